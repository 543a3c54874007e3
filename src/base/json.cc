#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"

namespace triptych {
namespace {

using nlohmann::ordered_json;

/// Builds a Json from nlohmann's SAX events; refuses duplicates and deep nesting as they appear.
class Builder : public nlohmann::json_sax<ordered_json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(Json()); }
  bool boolean(bool v) override { return add(Json::boolean(v)); }
  bool number_integer(int64_t v) override { return add(Json::integer(v)); }
  bool number_unsigned(uint64_t v) override {
    if (v > static_cast<uint64_t>(INT64_MAX)) return add(Json::number(static_cast<double>(v)));
    return add(Json::integer(static_cast<int64_t>(v)));
  }
  bool number_float(double v, const std::string&) override { return add(Json::number(v)); }
  bool string(std::string& v) override { return add(Json::string(std::move(v))); }
  bool binary(ordered_json::binary_t&) override { return fail("binary values are not JSON"); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    Frame& top = stack_.back();
    if (limits_.reject_duplicate_keys && !top.keys.insert(name).second) {
      return fail(fmt::format("duplicate key \"{}\"", name.substr(0, 100)));
    }
    top.key = std::move(name);
    return true;
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& e) override {
    std::string what = e.what();
    const size_t cut = what.find("parse error");
    if (cut != std::string::npos) what = what.substr(cut);
    return fail(fmt::format("not valid JSON at byte {}: {}", byte, what.substr(0, 200)));
  }

  Json root;
  std::string error;

 private:
  struct Frame {
    Json value;
    std::string key;
    std::set<std::string> keys;
  };

  bool fail(std::string what) {
    if (error.empty()) error = std::move(what);
    return false;
  }
  bool add(Json v) {
    if (stack_.empty()) {
      root = std::move(v);
    } else if (stack_.back().value.is_array()) {
      stack_.back().value.append(std::move(v));
    } else {
      stack_.back().value.push_member(std::move(stack_.back().key), std::move(v));
    }
    return true;
  }
  bool open(Json v) {
    if (static_cast<int>(stack_.size()) >= limits_.max_depth) {
      return fail(fmt::format("nested deeper than {} levels", limits_.max_depth));
    }
    stack_.push_back({std::move(v), {}, {}});
    return true;
  }
  bool close() {
    Json v = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(v));
  }

  JsonLimits limits_;
  std::vector<Frame> stack_;
};

const char* kind_name(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::kNull:
      return "null";
    case Json::Kind::kBool:
      return "a boolean";
    case Json::Kind::kInt:
      return "an integer";
    case Json::Kind::kFloat:
      return "a number";
    case Json::Kind::kString:
      return "a string";
    case Json::Kind::kArray:
      return "an array";
    case Json::Kind::kObject:
      return "an object";
  }
  return "?";
}

ordered_json to_nlohmann(const Json& v) {
  switch (v.kind()) {
    case Json::Kind::kNull:
      return nullptr;
    case Json::Kind::kBool:
      return v.bool_value();
    case Json::Kind::kInt:
      return v.int_value();
    case Json::Kind::kFloat:
      return v.number_value();
    case Json::Kind::kString:
      return v.string_value();
    case Json::Kind::kArray: {
      ordered_json out = ordered_json::array();
      for (const Json& e : v.elements()) out.push_back(to_nlohmann(e));
      return out;
    }
    case Json::Kind::kObject: {
      ordered_json out = ordered_json::object();
      for (const auto& [key, value] : v.members()) out[key] = to_nlohmann(value);
      return out;
    }
  }
  return nullptr;
}

const Json& null_json() {
  static const Json null;
  return null;
}

Status wrong_kind(const JsonRef& ref, std::string_view expected) {
  return ref.error(fmt::format("expected {}, found {}", expected, kind_name(ref.json().kind())));
}

}  // namespace

Json Json::boolean(bool v) {
  Json j;
  j.kind_ = Kind::kBool;
  j.int_ = v ? 1 : 0;
  return j;
}
Json Json::integer(int64_t v) {
  Json j;
  j.kind_ = Kind::kInt;
  j.int_ = v;
  return j;
}
Json Json::number(double v) {
  Json j;
  j.kind_ = Kind::kFloat;
  j.float_ = v;
  return j;
}
Json Json::number_or_null(std::optional<double> v) { return v ? number(*v) : Json(); }
Json Json::string(std::string v) {
  Json j;
  j.kind_ = Kind::kString;
  j.string_ = std::move(v);
  return j;
}
Json Json::array(std::vector<Json> v) {
  Json j;
  j.kind_ = Kind::kArray;
  j.elements_ = std::move(v);
  return j;
}
Json Json::object(std::vector<Member> v) {
  Json j;
  j.kind_ = Kind::kObject;
  j.members_ = std::move(v);
  return j;
}

int64_t Json::int_value() const {
  if (kind_ != Kind::kFloat) return int_;
  if (std::isnan(float_)) return 0;
  // 2^63 is the first double beyond the range; a cast from there on is undefined.
  if (float_ >= 0x1p63) return INT64_MAX;
  if (float_ < -0x1p63) return INT64_MIN;
  return static_cast<int64_t>(float_);
}

const Json* Json::find(std::string_view key) const {
  for (const Member& m : members_) {
    if (m.first == key) return &m.second;
  }
  return nullptr;
}

void Json::set(std::string key, Json value) {
  kind_ = Kind::kObject;
  for (Member& m : members_) {
    if (m.first == key) {
      m.second = std::move(value);
      return;
    }
  }
  members_.emplace_back(std::move(key), std::move(value));
}

void Json::push_member(std::string key, Json value) {
  members_.emplace_back(std::move(key), std::move(value));
}

void Json::append(Json value) {
  kind_ = Kind::kArray;
  elements_.push_back(std::move(value));
}

std::string Json::dump(int indent) const {
  return to_nlohmann(*this).dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  Builder builder(limits);
  try {
    if (!ordered_json::sax_parse(text.begin(), text.end(), &builder)) {
      return data_loss(builder.error.empty() ? "not valid JSON" : builder.error);
    }
  } catch (const std::exception& e) {
    return data_loss(fmt::format("not valid JSON: {}", e.what()));
  }
  return std::move(builder.root);
}

Result<Json> parse_json_file(const std::string& path, const JsonLimits& limits) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  Result<Json> parsed = parse_json(text, limits);
  if (!parsed.is_ok()) return parsed.status().with_context(path);
  return parsed;
}

bool JsonRef::has(std::string_view key) const {
  const Json* v = value_->find(key);
  return v != nullptr && !v->is_null();
}

JsonRef JsonRef::at(std::string_view key) const {
  const Json* v = value_->find(key);
  // The source (a file) is set off by ": ", keys below it by dots.
  const bool top = path_.find(": ") == std::string::npos;
  return {v != nullptr ? *v : null_json(), path_ + (top ? ": " : ".") + std::string(key)};
}

JsonRef JsonRef::at(size_t index) const {
  const bool inside = index < value_->elements().size();
  return {inside ? value_->elements()[index] : null_json(), fmt::format("{}[{}]", path_, index)};
}

Result<bool> JsonRef::as_bool() const {
  if (!value_->is_bool()) return wrong_kind(*this, "true or false");
  return value_->bool_value();
}

Result<int64_t> JsonRef::as_int() const {
  // Python writers sometimes store an integer as 5.0.
  if (value_->kind() == Json::Kind::kFloat) {
    const double d = value_->number_value();
    if (d >= -9e15 && d <= 9e15 && d == static_cast<double>(static_cast<int64_t>(d))) {
      return static_cast<int64_t>(d);
    }
  }
  if (!value_->is_int()) return wrong_kind(*this, "an integer");
  return value_->int_value();
}

Result<int64_t> JsonRef::as_int_in(int64_t low, int64_t high) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const int64_t v, as_int());
  if (v < low || v > high) {
    return error(fmt::format("{} is outside the allowed range {}..{}", v, low, high));
  }
  return v;
}

Result<double> JsonRef::as_number() const {
  if (!value_->is_number()) return wrong_kind(*this, "a number");
  return value_->number_value();
}

Result<std::string> JsonRef::as_string() const {
  if (!value_->is_string()) return wrong_kind(*this, "a string");
  return value_->string_value();
}

Result<std::vector<double>> JsonRef::as_numbers() const {
  if (!value_->is_array()) return wrong_kind(*this, "an array of numbers");
  std::vector<double> out;
  for (size_t i = 0; i < size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const double v, at(i).as_number());
    out.push_back(v);
  }
  return out;
}

Result<std::vector<int64_t>> JsonRef::as_ints() const {
  if (!value_->is_array()) return wrong_kind(*this, "an array of integers");
  std::vector<int64_t> out;
  for (size_t i = 0; i < size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t v, at(i).as_int());
    out.push_back(v);
  }
  return out;
}

Result<bool> JsonRef::get_bool(std::string_view key, bool fallback) const {
  return has(key) ? at(key).as_bool() : Result<bool>(fallback);
}
Result<int64_t> JsonRef::get_int(std::string_view key, int64_t fallback) const {
  return has(key) ? at(key).as_int() : Result<int64_t>(fallback);
}
Result<int64_t> JsonRef::get_int_in(std::string_view key, int64_t fallback, int64_t low,
                                    int64_t high) const {
  return has(key) ? at(key).as_int_in(low, high) : Result<int64_t>(fallback);
}
Result<double> JsonRef::get_number(std::string_view key, double fallback) const {
  return has(key) ? at(key).as_number() : Result<double>(fallback);
}
Result<std::string> JsonRef::get_string(std::string_view key, std::string fallback) const {
  return has(key) ? at(key).as_string() : Result<std::string>(std::move(fallback));
}

Status JsonRef::error(std::string_view what) const {
  return invalid_argument(fmt::format("{}: {}", path_, what));
}

}  // namespace triptych
