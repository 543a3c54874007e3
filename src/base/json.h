#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace triptych {

/// A parsed JSON value: null, bool, integer, float, string, array or object (insertion order kept).
/// A plain value type; the parser behind it is nlohmann-json and stays inside json.cc.
class Json {
 public:
  enum class Kind : uint8_t { kNull, kBool, kInt, kFloat, kString, kArray, kObject };
  using Member = std::pair<std::string, Json>;

  Json() = default;
  static Json boolean(bool v);
  static Json integer(int64_t v);
  static Json number(double v);
  /// Null when there is no value: what was not measured is no zero.
  static Json number_or_null(std::optional<double> v);
  static Json string(std::string v);
  static Json array(std::vector<Json> v = {});
  static Json object(std::vector<Member> v = {});

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_int() const { return kind_ == Kind::kInt; }
  bool is_number() const { return kind_ == Kind::kInt || kind_ == Kind::kFloat; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }

  /// Unchecked readers: the zero value of the type when the kind differs. Use JsonRef to read
  /// input.
  bool bool_value() const { return kind_ == Kind::kBool && int_ != 0; }
  /// A float is cut to its whole part and to the range; NaN gives 0.
  int64_t int_value() const;
  double number_value() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_); }
  const std::string& string_value() const { return string_; }
  const std::vector<Json>& elements() const { return elements_; }
  const std::vector<Member>& members() const { return members_; }

  /// Member `key` of an object, or null when there is none.
  const Json* find(std::string_view key) const;
  /// Sets or replaces member `key`; makes a null value an object.
  void set(std::string key, Json value);
  /// Adds a member without looking for an earlier one of that name; for builders.
  void push_member(std::string key, Json value);
  /// Appends to an array; makes a null value an array.
  void append(Json value);

  /// Compact text, or indented when indent >= 0. Strings are emitted as valid UTF-8.
  std::string dump(int indent = -1) const;

 private:
  Kind kind_ = Kind::kNull;
  int64_t int_ = 0;
  double float_ = 0;
  std::string string_;
  std::vector<Json> elements_;
  std::vector<Member> members_;
};

struct JsonLimits {
  int max_depth = 128;
  bool reject_duplicate_keys = true;
};

/// Parses one JSON document. Errors name line/byte, the depth limit or the duplicate key.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});
/// Reads and parses a file; errors start with the file's path.
Result<Json> parse_json_file(const std::string& path, const JsonLimits& limits = {});

/// A Json value together with where it came from, so that every error names file and key path:
/// "config.json: text_config.num_hidden_layers: expected an integer, found a string".
class JsonRef {
 public:
  JsonRef(const Json& value, std::string source) : value_(&value), path_(std::move(source)) {}

  const Json& json() const { return *value_; }
  const std::string& path() const { return path_; }
  bool is_null() const { return value_->is_null(); }

  /// True when the object has `key` with a value other than null.
  bool has(std::string_view key) const;
  /// Member `key`; a reference to null when it is absent (or this is not an object).
  JsonRef at(std::string_view key) const;
  JsonRef at(size_t index) const;
  size_t size() const { return value_->elements().size(); }

  Result<bool> as_bool() const;
  Result<int64_t> as_int() const;
  /// An integer within [low, high]; the error names the range.
  Result<int64_t> as_int_in(int64_t low, int64_t high) const;
  Result<double> as_number() const;
  Result<std::string> as_string() const;
  Result<std::vector<double>> as_numbers() const;
  Result<std::vector<int64_t>> as_ints() const;

  /// The member's value, or `fallback` when it is absent or null; a wrong type is an error.
  Result<bool> get_bool(std::string_view key, bool fallback) const;
  Result<int64_t> get_int(std::string_view key, int64_t fallback) const;
  Result<int64_t> get_int_in(std::string_view key, int64_t fallback, int64_t low,
                             int64_t high) const;
  Result<double> get_number(std::string_view key, double fallback) const;
  Result<std::string> get_string(std::string_view key, std::string fallback) const;

  /// kInvalidArgument "<path>: <what>".
  Status error(std::string_view what) const;

 private:
  const Json* value_;
  std::string path_;
};

}  // namespace triptych
