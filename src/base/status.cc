#include "base/status.h"

#include <exception>
#include <new>

namespace triptych {

Status status_of_exception(std::string_view doing) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory left while " + std::string(doing));
  } catch (const std::exception& e) {
    return internal_error(std::string(doing) + " threw: " + e.what());
  } catch (...) {
    return internal_error(std::string(doing) + " threw something unknown");
  }
}

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::kNotFound:
      return "NOT_FOUND";
    case StatusCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case StatusCode::kDataLoss:
      return "DATA_LOSS";
    case StatusCode::kUnsupported:
      return "UNSUPPORTED";
    case StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kCancelled:
      return "CANCELLED";
    case StatusCode::kUnavailable:
      return "UNAVAILABLE";
    case StatusCode::kInternal:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

int exit_code(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
      return 2;
    case StatusCode::kNotFound:
    case StatusCode::kPermissionDenied:
      return 3;
    case StatusCode::kDataLoss:
      return 4;
    case StatusCode::kUnsupported:
      return 5;
    case StatusCode::kOutOfRange:
    case StatusCode::kResourceExhausted:
      return 6;
    case StatusCode::kFailedPrecondition:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kCancelled:
    case StatusCode::kUnavailable:
      return 7;
    case StatusCode::kInternal:
      return 70;
  }
  return 70;
}

Status Status::with_context(std::string_view context) const {
  if (is_ok()) return *this;
  return {code_, std::string(context) + ": " + message_};
}

}  // namespace triptych
