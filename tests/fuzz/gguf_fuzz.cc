// Any bytes as a GGUF model: opened through a file in memory, and every row of what is accepted is
// read once.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/config_reader.h"

namespace {

using triptych::Checkpoint;

/// Rows of a tensor that a hostile file may claim are bounded by the file, so all are read.
void read_everything(const Checkpoint& checkpoint) {
  std::vector<std::byte> buffer;
  for (const triptych::TensorInfo& t : checkpoint.tensors()) {
    if (checkpoint.find(t.name) != &t) std::abort();
    const int64_t rows = triptych::row_count(t.shape);
    const auto data = checkpoint.read_rows(t, 0, rows, buffer);
    if (data.is_ok() != t.dtype.has_value()) std::abort();
    if (!data.is_ok()) continue;
    const auto* bytes = static_cast<const unsigned char*>(*data);
    unsigned sum = 0;
    for (uint64_t i = 0; i < t.n_bytes; ++i) sum += bytes[i];
    volatile unsigned sink = sum;
    static_cast<void>(sink);
    checkpoint.release(t);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = ::memfd_create("fuzz.gguf", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (file < 0 || ::ftruncate(file, 0) != 0 ||
      ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  const auto opened = Checkpoint::open(path);
  if (!opened.is_ok()) {
    if (opened.status().message().find(path) == std::string::npos) std::abort();
    return 0;
  }
  const auto reader = triptych::ConfigReader::create((*opened)->config(), path);
  if (!reader.is_ok()) std::abort();  // a config that we made ourselves
  const auto text = reader->text();
  if (!text.is_ok()) std::abort();
  static_cast<void>(triptych::read_rope(*text).is_ok());
  read_everything(**opened);
  return 0;
}
