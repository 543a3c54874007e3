#include "core/tensor_registry.h"

#include <fmt/format.h>

#include <chrono>

#include "base/json.h"

namespace triptych {

std::string_view modality_name(Modality m) {
  switch (m) {
    case Modality::kText:
      return "text";
    case Modality::kImage:
      return "image";
    case Modality::kAudio:
      return "audio";
    case Modality::kVideo:
      return "video";
  }
  return "?";
}

void TensorRegistry::set_sink(Sink sink) {
  const std::lock_guard lock(mutex_);
  sink_ = std::move(sink);
}

void TensorRegistry::publish(std::string_view name, std::string_view producer, Modality modality,
                             const View& view, std::string_view note) {
  TensorRecord record{std::string(name), std::string(producer), modality, view.dtype,
                      view.shape,        view.strides,          0,        std::string(note)};
  record.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  tap(name, view);
  const std::lock_guard lock(mutex_);
  if (sink_) sink_(record);
  last_.insert_or_assign(record.name, std::move(record));
}

Status TensorRegistry::expect(std::string_view name, std::string_view consumer, DType dtype,
                              const Shape& shape) const {
  const std::lock_guard lock(mutex_);
  const auto found = last_.find(name);
  if (found == last_.end()) {
    return internal_error(
        fmt::format("tensor {}: {} expects it, but nothing has produced it", name, consumer));
  }
  const TensorRecord& got = found->second;
  bool same = got.dtype == dtype && got.shape.rank() == shape.rank();
  for (int i = 0; same && i < shape.rank(); ++i) same = shape[i] < 0 || shape[i] == got.shape[i];
  if (same) return Status::ok();
  return internal_error(fmt::format("tensor {}: {} produced {} {}, but {} expects {} {}", name,
                                    got.producer, dtype_name(got.dtype), got.shape.to_string(),
                                    consumer, dtype_name(dtype), shape.to_string()));
}

std::string to_json_line(const TensorRecord& record) {
  Json line = Json::object();
  line.set("name", Json::string(record.name));
  line.set("producer", Json::string(record.producer));
  line.set("modality", Json::string(std::string(modality_name(record.modality))));
  line.set("dtype", Json::string(std::string(dtype_name(record.dtype))));
  Json shape = Json::array();
  Json strides = Json::array();
  for (int i = 0; i < record.shape.rank(); ++i) {
    shape.append(Json::integer(record.shape[i]));
    strides.append(Json::integer(record.strides[static_cast<size_t>(i)]));
  }
  line.set("shape", std::move(shape));
  line.set("strides", std::move(strides));
  line.set("time_ns", Json::integer(record.time_ns));
  if (!record.note.empty()) line.set("note", Json::string(record.note));
  return line.dump();
}

}  // namespace triptych
