#include "server/openai/tokens.h"

#include <fmt/format.h>

#include <limits>

#include "server/openai/chat_request.h"

namespace triptych::openai {
namespace {

// What an I/O thread may be kept busy with.
constexpr size_t kMostTextBytes = size_t{1} << 20;
constexpr size_t kMostTokens = size_t{1} << 20;

Status check_length(const JsonRef& field, size_t n_bytes) {
  if (n_bytes <= kMostTextBytes) return Status::ok();
  return field.error(fmt::format("the text has {} bytes; it may have {}", n_bytes, kMostTextBytes));
}

Result<std::vector<int32_t>> ids_of_messages(const JsonRef& messages, const Preprocessor& prep) {
  Call call;
  TRIPTYCH_RETURN_IF_ERROR(read_messages(messages, {}, call));
  const Request& request = call.request;
  size_t n_bytes = 0;
  for (const RequestMessage& message : request.messages) {
    for (const RequestPart& part : message.parts) n_bytes += part.text.size();
  }
  TRIPTYCH_RETURN_IF_ERROR(check_length(messages, n_bytes));
  TRIPTYCH_ASSIGN_OR_RETURN(PreparedRequest prepared,
                            prep.prepare_prompt(request, std::numeric_limits<int64_t>::max()));
  return std::move(prepared.ids);
}

Result<std::vector<int32_t>> ids_of_prompt(const JsonRef& body, const Preprocessor& prep) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string prompt, body.at("prompt").as_string());
  TRIPTYCH_RETURN_IF_ERROR(check_length(body.at("prompt"), prompt.size()));
  TRIPTYCH_ASSIGN_OR_RETURN(const bool special, body.get_bool("add_special_tokens", true));
  return prep.tokenizer().encode(prompt, special);
}

}  // namespace

Result<Json> tokenize(const JsonRef& body, const Preprocessor& prep, int64_t context_tokens) {
  if (body.has("prompt") == body.has("messages")) {
    return body.error("needs either \"prompt\" or \"messages\"");
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const bool with_strings, body.get_bool("return_token_strs", false));
  TRIPTYCH_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      body.has("prompt") ? ids_of_prompt(body, prep) : ids_of_messages(body.at("messages"), prep));
  Json tokens = Json::array();
  Json strings = with_strings ? Json::array() : Json();
  for (const int32_t id : ids) {
    tokens.append(Json::integer(id));
    if (with_strings) strings.append(Json::string(prep.tokenizer().id_to_token(id).value_or("")));
  }
  Json out = Json::object();
  out.set("count", Json::integer(std::ssize(ids)));
  out.set("max_model_len", Json::integer(context_tokens));
  out.set("tokens", std::move(tokens));
  out.set("token_strs", std::move(strings));
  return out;
}

Result<Json> detokenize(const JsonRef& body, const Tokenizer& tokenizer) {
  const JsonRef tokens = body.at("tokens");
  if (!tokens.json().is_array()) return tokens.error("expected a list of token ids");
  if (tokens.size() > kMostTokens) {
    return tokens.error(
        fmt::format("there are {} ids; there may be {}", tokens.size(), kMostTokens));
  }
  std::vector<TokenId> ids;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto last = static_cast<int64_t>(tokenizer.vocab_size()) - 1;
    TRIPTYCH_ASSIGN_OR_RETURN(const int64_t id, tokens.at(i).as_int_in(0, last));
    ids.push_back(static_cast<TokenId>(id));
  }
  Json out = Json::object();
  out.set("prompt", Json::string(tokenizer.decode(ids, false)));
  return out;
}

}  // namespace triptych::openai
