#pragma once

#include "base/thread_pool.h"

namespace triptych {

/// Where kernels of a backend run: the CPU backend uses the pool, a device backend its native
/// queue. Borrowed; one engine step uses one stream.
struct Stream {
  ThreadPool* pool = nullptr;
  void* native = nullptr;
};

}  // namespace triptych
