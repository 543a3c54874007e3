#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace triptych {

enum class Modality : uint8_t { kText, kImage, kAudio, kVideo };
std::string_view modality_name(Modality m);

/// What a stage boundary says about a tensor that crosses it.
struct TensorRecord {
  std::string name;      ///< the boundary, for example "vision_tower.out"
  std::string producer;  ///< the stage that wrote it
  Modality modality = Modality::kText;
  DType dtype = DType::kF32;
  Shape shape;
  std::array<int64_t, kMaxRank> strides{};
  int64_t time_ns = 0;  ///< steady clock
  std::string note;     ///< what was chosen dynamically, for example a tile count or length bucket
};

/// The register of tensors that cross stage boundaries. A producer publishes, the consumer states
/// what it expects, and a mismatch is an error that names both sides instead of a silent wrong
/// answer. Thread-safe; a handful of calls a request, none inside a layer loop unless a tap is set.
class TensorRegistry {
 public:
  using Sink = std::function<void(const TensorRecord&)>;
  using Tap = std::function<void(const std::string& name, const View& view)>;

  /// Called with every record, in order (`--trace-tensors`).
  void set_sink(Sink sink);
  /// Called with the contents of every tensor offered to tap(); for parity tests. Set before use.
  void set_tap(Tap tap) { tap_ = std::move(tap); }
  bool has_tap() const { return static_cast<bool>(tap_); }

  /// Records that `producer` made `view` for boundary `name`.
  void publish(std::string_view name, std::string_view producer, Modality modality,
               const View& view, std::string_view note = {});

  /// Checks that the last tensor published for `name` is what `consumer` expects: dtype and shape,
  /// where -1 stands for any size. kInternal naming both sides otherwise.
  Status expect(std::string_view name, std::string_view consumer, DType dtype,
                const Shape& shape) const;

  /// Shows a tensor inside a stage ("vision_tower.block.3") to the tap, if there is one.
  void tap(std::string_view name, const View& view) const {
    if (tap_) tap_(std::string(name), view);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, TensorRecord, std::less<>> last_;
  Sink sink_;
  Tap tap_;
};

/// A record as one JSON line.
std::string to_json_line(const TensorRecord& record);

}  // namespace triptych
