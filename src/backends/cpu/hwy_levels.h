#pragma once

// Include before hwy/foreach_target.h. Highway compiles the file once a target; these are the
// three that the levels of CpuIsa map to: N_SSSE3 (within x86-64-v2, the floor of all our code),
// N_AVX2 with FMA and F16C, and N_AVX3, AVX-512 (F, VL, DQ, BW). Files choose by our own level and
// not with Highway's dispatch, so that a level can be forced.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSE4 | HWY_AVX3_DL)
