#include "text/base64.h"

#include "text/ffi.h"

namespace triptych {

Result<std::string> base64_decode(std::string_view text) {
  ffi::Text out;
  ffi::Text error;
  const tt_status status = tt_base64_decode(ffi::bytes(text), out.out(), error.out());
  TRIPTYCH_RETURN_IF_ERROR(ffi::to_status(status, error));
  return out.string();
}

}  // namespace triptych
