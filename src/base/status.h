#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace triptych {

/// Error classes of the whole system. Each maps to exactly one HTTP status, gRPC code and process
/// exit code, so a new one is a design question.
enum class StatusCode : uint8_t {
  kOk,
  kInvalidArgument,     ///< the caller's fault: a bad flag, field or value
  kNotFound,            ///< a file, model or route that is not there
  kPermissionDenied,    ///< there, but not readable for us
  kDataLoss,            ///< truncated or corrupt bytes
  kUnsupported,         ///< well-formed, but a format, model or option that we do not handle
  kOutOfRange,          ///< longer or larger than a limit (context, pixels, file size)
  kResourceExhausted,   ///< memory, pages or queue full
  kFailedPrecondition,  ///< call order or state does not allow it
  kDeadlineExceeded,
  kCancelled,
  kUnavailable,  ///< draining or not ready; a retry may work
  kInternal,     ///< our bug
};

/// Upper-case name as used in logs ("INVALID_ARGUMENT").
std::string_view status_code_name(StatusCode code);

/// Process exit code of an error class: 0 ok, 2 usage, 3 missing or unreadable, 4 corrupt data,
/// 5 unsupported, 6 over a limit or out of resources, 7 not possible now, 70 our own bug.
int exit_code(StatusCode code);

/// Outcome without a value. Cheap when ok.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }
  bool is_ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same error with `context` and ": " in front of the message; ok stays ok.
  Status with_context(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid_argument(std::string m) {
  return {StatusCode::kInvalidArgument, std::move(m)};
}
inline Status not_found(std::string m) { return {StatusCode::kNotFound, std::move(m)}; }
inline Status data_loss(std::string m) { return {StatusCode::kDataLoss, std::move(m)}; }
inline Status unsupported(std::string m) { return {StatusCode::kUnsupported, std::move(m)}; }
inline Status out_of_range(std::string m) { return {StatusCode::kOutOfRange, std::move(m)}; }
inline Status resource_exhausted(std::string m) {
  return {StatusCode::kResourceExhausted, std::move(m)};
}
inline Status failed_precondition(std::string m) {
  return {StatusCode::kFailedPrecondition, std::move(m)};
}
inline Status internal_error(std::string m) { return {StatusCode::kInternal, std::move(m)}; }
/// Of the exception that is being handled while `doing`: kResourceExhausted for memory that could
/// not be had, else kInternal. Call it in a catch block only.
Status status_of_exception(std::string_view doing);

/// Outcome with a value of type T, or the error that kept it from being made.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (std::get<Status>(state_).is_ok()) state_ = internal_error("Result made from an ok Status");
  }

  bool is_ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return is_ok() ? Status::ok() : std::get<Status>(state_); }

  /// The value; only after is_ok().
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<Status, T> state_;
};

#define TRIPTYCH_CONCAT_INNER(a, b) a##b
#define TRIPTYCH_CONCAT(a, b) TRIPTYCH_CONCAT_INNER(a, b)

/// Returns the Status of `expr` from the enclosing function when it is an error.
#define TRIPTYCH_RETURN_IF_ERROR(expr)                      \
  do {                                                      \
    ::triptych::Status triptych_status_ = (expr);           \
    if (!triptych_status_.is_ok()) return triptych_status_; \
  } while (false)

/// `TRIPTYCH_ASSIGN_OR_RETURN(auto x, f())`: x = value of the Result, or returns its error.
#define TRIPTYCH_ASSIGN_OR_RETURN(lhs, expr) \
  TRIPTYCH_ASSIGN_OR_RETURN_INNER(TRIPTYCH_CONCAT(triptych_result_, __LINE__), lhs, expr)
#define TRIPTYCH_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                    \
  if (!tmp.is_ok()) return tmp.status();                \
  lhs = std::move(tmp).value()

}  // namespace triptych
