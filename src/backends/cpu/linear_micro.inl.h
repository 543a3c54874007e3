#pragma once

// Products of a strip of rows with weight panels, over the Lanes that the including file chose.
// Each output is one chain of multiply-adds over k in order, whatever the strip's height and the
// number of panels: that is what makes results independent of the batch.

#include "backends/cpu/linear_isa.h"

namespace triptych {
namespace {

#define TRIPTYCH_ALWAYS_INLINE inline __attribute__((always_inline))

template <int I>
struct Index {
  static constexpr int value = I;
};
template <int... I>
struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I>
struct MakeIndices<0, I...> {
  using type = Indices<I...>;
};

template <typename F, int... I>
TRIPTYCH_ALWAYS_INLINE void unroll_over(F&& f, Indices<I...>) {
  (f(Index<I>{}), ...);
}
/// f(0) ... f(N - 1) with compile-time indices, so that arrays of registers stay in registers.
template <int N, typename F>
TRIPTYCH_ALWAYS_INLINE void unroll(F&& f) {
  unroll_over(f, typename MakeIndices<N>::type{});
}

// Far enough ahead to cover the memory's latency at the speed of one thread's stream, near enough
// to stay in the first-level cache.
constexpr int64_t kPrefetchBytes = 1024;

/// The steps of a format: kElements of K, kBytes of a panel each. `a` is a row's place in its
/// 64-byte chunk of the strip.
template <int kElements_, int kBytes_>
struct StepBase {
  static constexpr int kElements = kElements_;
  static constexpr int kBytes = kBytes_;
};

struct StepF32 : StepBase<1, 64> {
  template <int MR, int NP>
  static TRIPTYCH_ALWAYS_INLINE void run(const std::byte* a, const std::byte* w,
                                         int64_t panel_bytes, Lanes (&acc)[NP][MR]) {
    Lanes b[NP];
    unroll<NP>([&](auto p) __attribute__((always_inline)) {
      b[p.value] = Lanes::load(reinterpret_cast<const float*>(w + p.value * panel_bytes));
    });
    multiply_add<MR, NP>(reinterpret_cast<const float*>(a), b, acc);
  }

  template <int MR, int NP>
  static TRIPTYCH_ALWAYS_INLINE void multiply_add(const float* a, const Lanes (&b)[NP],
                                                  Lanes (&acc)[NP][MR]) {
    unroll<MR>([&](auto r) __attribute__((always_inline)) {
      const Lanes x = Lanes::splat(a[r.value * 16]);
      unroll<NP>([&](auto p) __attribute__((always_inline)) {
        acc[p.value][r.value] = fma(x, b[p.value], acc[p.value][r.value]);
      });
    });
  }
};

struct StepF16 : StepBase<1, 32> {
  template <int MR, int NP>
  static TRIPTYCH_ALWAYS_INLINE void run(const std::byte* a, const std::byte* w,
                                         int64_t panel_bytes, Lanes (&acc)[NP][MR]) {
    Lanes b[NP];
    unroll<NP>([&](auto p) __attribute__((always_inline)) {
      b[p.value] = Lanes::load_f16(w + p.value * panel_bytes);
    });
    StepF32::multiply_add<MR, NP>(reinterpret_cast<const float*>(a), b, acc);
  }
};

struct StepBF16Widened : StepBase<2, 64> {
  template <int MR, int NP>
  static TRIPTYCH_ALWAYS_INLINE void run(const std::byte* a, const std::byte* w,
                                         int64_t panel_bytes, Lanes (&acc)[NP][MR]) {
    Lanes b[NP];
    unroll<NP>([&](auto p) __attribute__((always_inline)) {
      b[p.value] = Lanes::load_bf16_even(w + p.value * panel_bytes);
    });
    StepF32::multiply_add<MR, NP>(reinterpret_cast<const float*>(a), b, acc);
    unroll<NP>([&](auto p) __attribute__((always_inline)) {
      b[p.value] = Lanes::load_bf16_odd(w + p.value * panel_bytes);
    });
    StepF32::multiply_add<MR, NP>(reinterpret_cast<const float*>(a) + 1, b, acc);
  }
};

/// kChunk: elements of K in the 64 bytes that a row has in each chunk of the strip.
template <typename Step, int kChunk, int MR, int NP>
void micro_kernel(const MicroArgs& args) {
  constexpr int64_t kSteps = kChunk / Step::kElements;
  constexpr int64_t kStepBytesA = 64 / kSteps;
  const int64_t panel_bytes = args.panel_bytes;
  const int64_t total = (args.k + Step::kElements - 1) / Step::kElements;
  const int64_t block_bytes = total * Step::kBytes;
  const int64_t turn = (block_bytes - kPrefetchBytes) / Step::kBytes / kSteps;
  Lanes acc[NP][MR];
  unroll<NP * MR>([&](auto i) __attribute__((always_inline)) {
    acc[i.value / MR][i.value % MR] = Lanes::zero();
  });
  if (args.resume) {
    unroll<NP * MR>([&](auto i) __attribute__((always_inline)) {
      constexpr int p = decltype(i)::value / MR;
      constexpr int r = decltype(i)::value % MR;
      acc[p][r] = Lanes::load(args.tile + (p * args.tile_rows + r) * 16);
    });
  }
  const std::byte* a = args.a;
  const std::byte* w = args.w;
  // As a number: it runs past the block's end, and at the turn to where the next one begins.
  auto ahead = reinterpret_cast<uintptr_t>(w) + kPrefetchBytes;
  for (int64_t done = 0, chunk = 0; done < total; ++chunk) {
    if (chunk == turn) ahead += static_cast<uintptr_t>(args.next - args.w - block_bytes);
    const int64_t stop = done + kSteps < total ? done + kSteps : total;
    const std::byte* a_step = a;
    for (; done < stop; ++done) {
      unroll<NP>([&](auto p) __attribute__((always_inline)) {
        __builtin_prefetch(
            reinterpret_cast<const void*>(ahead + static_cast<uintptr_t>(p.value * panel_bytes)), 0,
            3);
      });
      Step::template run<MR, NP>(a_step, w, panel_bytes, acc);
      a_step += kStepBytesA;
      w += Step::kBytes;
      ahead += Step::kBytes;
    }
    a += MR * 64;
  }
  unroll<NP * MR>([&](auto i) __attribute__((always_inline)) {
    constexpr int p = decltype(i)::value / MR;
    constexpr int r = decltype(i)::value % MR;
    acc[p][r].store(args.tile + (p * args.tile_rows + r) * 16);
  });
}

template <typename Step, int kChunk, int MR, int... NP>
void fill_row_class(LinearKernels& kernels) {
  ((kernels.micro[MR][NP] = &micro_kernel<Step, kChunk, MR, NP>), ...);
}

}  // namespace
}  // namespace triptych
