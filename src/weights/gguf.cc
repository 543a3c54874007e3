#include "weights/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace triptych {
namespace {

/// Metadata values lie unaligned in the file.
template <typename T>
T load(const std::byte* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

}  // namespace

uint64_t GgufFile::scalar_bytes(Kind kind) {
  switch (kind) {
    case Kind::kU8:
    case Kind::kI8:
    case Kind::kBool:
      return 1;
    case Kind::kU16:
    case Kind::kI16:
      return 2;
    case Kind::kU32:
    case Kind::kI32:
    case Kind::kF32:
      return 4;
    case Kind::kU64:
    case Kind::kI64:
    case Kind::kF64:
      return 8;
    case Kind::kString:
    case Kind::kArray:
      return 0;
  }
  return 0;
}

std::string_view GgufFile::kind_name(Kind kind) {
  switch (kind) {
    case Kind::kU8:
    case Kind::kI8:
    case Kind::kU16:
    case Kind::kI16:
    case Kind::kU32:
    case Kind::kI32:
    case Kind::kU64:
    case Kind::kI64:
      return "an integer";
    case Kind::kF32:
    case Kind::kF64:
      return "a number";
    case Kind::kBool:
      return "a boolean";
    case Kind::kString:
      return "a string";
    case Kind::kArray:
      return "an array";
  }
  return "a value";
}

std::optional<int64_t> GgufFile::as_int(Kind kind, const std::byte* at) {
  switch (kind) {
    case Kind::kU8:
      return load<uint8_t>(at);
    case Kind::kI8:
      return load<int8_t>(at);
    case Kind::kU16:
      return load<uint16_t>(at);
    case Kind::kI16:
      return load<int16_t>(at);
    case Kind::kU32:
      return load<uint32_t>(at);
    case Kind::kI32:
      return load<int32_t>(at);
    case Kind::kI64:
      return load<int64_t>(at);
    case Kind::kU64: {
      const auto v = load<uint64_t>(at);
      if (v > static_cast<uint64_t>(INT64_MAX)) return INT64_MAX;
      return static_cast<int64_t>(v);
    }
    default:
      return std::nullopt;
  }
}

const GgufFile::Value* GgufFile::find(std::string_view key) const {
  const auto it = values_.find(std::string(key));
  return it != values_.end() ? &it->second : nullptr;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto it = std::find_if(tensors_.begin(), tensors_.end(),
                               [&](const GgufTensor& t) { return t.name == name; });
  return it != tensors_.end() ? &*it : nullptr;
}

Status GgufFile::error(std::string_view key, std::string_view what) const {
  return invalid_argument(fmt::format("{}: {}: {}", path_, key, what));
}

Result<std::optional<int64_t>> GgufFile::find_int(std::string_view key, int64_t low,
                                                  int64_t high) const {
  const Value* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  const std::optional<int64_t> v = as_int(value->kind, value->payload.data());
  if (!v) return error(key, fmt::format("expected an integer, found {}", kind_name(value->kind)));
  if (*v < low || *v > high) {
    return error(key, fmt::format("{} is outside the allowed range {}..{}", *v, low, high));
  }
  return v;
}

Result<std::optional<double>> GgufFile::find_number(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::optional<double>();
  double v = 0;
  if (value->kind == Kind::kF32) {
    v = load<float>(value->payload.data());
  } else if (value->kind == Kind::kF64) {
    v = load<double>(value->payload.data());
  } else if (const auto whole = as_int(value->kind, value->payload.data())) {
    v = static_cast<double>(*whole);
  } else {
    return error(key, fmt::format("expected a number, found {}", kind_name(value->kind)));
  }
  if (!std::isfinite(v)) return error(key, "is not a finite number");
  return std::optional<double>(v);
}

Result<std::optional<bool>> GgufFile::find_bool(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (value->kind != Kind::kBool) {
    return error(key, fmt::format("expected a boolean, found {}", kind_name(value->kind)));
  }
  return std::optional<bool>(load<uint8_t>(value->payload.data()) != 0);
}

Result<std::optional<std::string>> GgufFile::find_string(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (value->kind != Kind::kString) {
    return error(key, fmt::format("expected a string, found {}", kind_name(value->kind)));
  }
  return std::optional<std::string>(
      std::string(reinterpret_cast<const char*>(value->payload.data()), value->payload.size()));
}

Result<std::vector<std::string>> GgufFile::find_strings(std::string_view key) const {
  std::vector<std::string> out;
  const Value* value = find(key);
  if (value == nullptr) return out;
  if (value->kind != Kind::kArray || value->element != Kind::kString) {
    return error(key, "expected an array of strings");
  }
  out.reserve(value->count);
  const std::byte* at = value->payload.data();
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto length = load<uint64_t>(at);  // checked by the parser
    out.emplace_back(reinterpret_cast<const char*>(at + 8), length);
    at += 8 + length;
  }
  return out;
}

Result<std::vector<float>> GgufFile::find_floats(std::string_view key) const {
  std::vector<float> out;
  const Value* value = find(key);
  if (value == nullptr) return out;
  if (value->kind != Kind::kArray || value->element != Kind::kF32) {
    return error(key, "expected an array of f32 numbers");
  }
  out.resize(value->count);
  if (!out.empty()) std::memcpy(out.data(), value->payload.data(), out.size() * sizeof(float));
  return out;
}

Result<std::vector<int32_t>> GgufFile::find_ints(std::string_view key) const {
  std::vector<int32_t> out;
  const Value* value = find(key);
  if (value == nullptr) return out;
  if (value->kind != Kind::kArray || value->element == Kind::kString) {
    return error(key, "expected an array of integers");
  }
  out.reserve(value->count);
  const uint64_t step = scalar_bytes(value->element);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto v = as_int(value->element, value->payload.data() + i * step);
    if (!v || *v < INT32_MIN || *v > INT32_MAX) {
      return error(key, fmt::format("element {} is no 32-bit integer", i));
    }
    out.push_back(static_cast<int32_t>(*v));
  }
  return out;
}

}  // namespace triptych
