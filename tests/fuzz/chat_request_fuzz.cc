// Bodies of /v1/chat/completions: what is taken can be prepared, what is not is the caller's fault.
#include <cstdint>
#include <cstdlib>

#include "server/openai/chat_request.h"
#include "server/openai/error.h"

using namespace triptych;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_call(const openai::Call& call) {
  check(!call.request.messages.empty());
  check(validate(call.request.sampling).is_ok());
  size_t n_media = 0;
  for (const RequestMessage& message : call.request.messages) {
    for (const RequestPart& part : message.parts) {
      if (!part.media) continue;
      check(part.text.empty() && *part.media == n_media);
      ++n_media;
    }
  }
  check(n_media == call.request.media.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Json> json = parse_json(text, {.max_depth = 64});
  if (!json.is_ok()) return 0;
  const JsonRef body(*json, std::string(openai::kBody));
  (void)openai::read_model_name(body).is_ok();
  const Result<openai::Call> call = openai::read_chat_call(body, {});
  if (call.is_ok()) {
    check_call(*call);
  } else {
    const http::Response error = openai::error_response(call.status());
    check(error.status == 400);
    check(parse_json(error.body).is_ok());
  }
  return 0;
}
