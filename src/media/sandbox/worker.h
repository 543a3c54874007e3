#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "media/image/recipe.h"

namespace triptych::sandbox {

/// What a worker does with a picture: preprocess_image, or in tests something worse.
using PictureWork = Result<PixelTensor> (*)(std::span<const std::byte> bytes,
                                            const ImageRecipe& recipe, const DecodeOptions& options,
                                            ThreadPool& pool);

/// Sanitizers map terabytes and make system calls of their own, so address space and system calls
/// are not limited with them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Makes this process, a child of `parent` that holds one connection, fit to outlive nothing and
/// hold nothing: it dies with `parent`, ignores the signals that tell a server to end, and of what
/// is open keeps `socket` alone, as kSocket. False when that cannot be done.
bool leave_program(pid_t parent, int socket, const char* name);
inline constexpr int kSocket = 3;

/// A worker's life: confines itself, says so on `socket`, and answers pictures until the other end
/// is closed. Called right after fork() in a process with one thread.
[[noreturn]] void run_worker(pid_t parent, int socket, PictureWork work);

}  // namespace triptych::sandbox
