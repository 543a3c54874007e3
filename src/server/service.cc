#include "server/service.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <random>
#include <set>

#include "base/clock.h"
#include "server/openai/chat_request.h"
#include "server/openai/completion_request.h"
#include "server/openai/error.h"
#include "server/openai/tokens.h"
#include "server/playground.h"

namespace triptych {
namespace {

using http::Exchange;
using openai::AnswerForm;

constexpr std::string_view kLivePath = "/livez";
constexpr std::string_view kPagePath = "/";
constexpr JsonLimits kJsonLimits{.max_depth = 64};

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void respond_json(Exchange& exchange, const Json& json) {
  exchange.respond({.headers = {}, .body = json.dump()});
}

void respond_result(Exchange& exchange, const Result<Json>& result) {
  if (result.is_ok()) return respond_json(exchange, *result);
  exchange.respond(openai::error_response(result.status()));
}

constexpr size_t kLongestRequestId = 128;

/// The id that the client gave the request, where it can stand in a header and a log as it is.
std::optional<std::string> given_id(const http::Request& request) {
  const std::string* id = request.header("X-Request-Id");
  if (id == nullptr || id->empty() || id->size() > kLongestRequestId) return std::nullopt;
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  if (!std::all_of(id->begin(), id->end(), harmless)) return std::nullopt;
  return *id;
}

/// Puts the request's id on whatever is answered.
class IdentifiedExchange final : public Exchange {
 public:
  IdentifiedExchange(std::shared_ptr<Exchange> exchange, std::string id)
      : exchange_(std::move(exchange)), id_(std::move(id)) {}

  void respond(http::Response response) override {
    exchange_->respond(with_id(std::move(response)));
  }
  void start_stream(http::Response head) override {
    exchange_->start_stream(with_id(std::move(head)));
  }
  bool write(std::string_view piece) override { return exchange_->write(piece); }
  void finish() override { exchange_->finish(); }
  void on_gone(std::function<void()> gone) override { exchange_->on_gone(std::move(gone)); }

 private:
  http::Response with_id(http::Response response) const {
    response.headers.push_back({"x-request-id", id_});
    return response;
  }

  std::shared_ptr<Exchange> exchange_;
  std::string id_;
};

Json health_json(const char* status) {
  Json out = Json::object();
  out.set("status", Json::string(status));
  return out;
}

}  // namespace

Service::Service(std::vector<ServedModel> models, const AccessControl& access,
                 Playground playground)
    : models_(std::move(models)), access_(access), playground_(playground) {
  std::random_device random;
  id_base_ = (uint64_t{random()} << 32) | random();
  for (const ServedModel& model : models_) {
    for (const std::string& name : model.names) by_name_.emplace(name, &model);
  }
}

const std::vector<Service::Route>& Service::routes() {
  static const std::vector<Route> kRoutes = {
      {"GET", "/", &Service::page},
      {"GET", "/livez", &Service::live},
      {"GET", "/readyz", &Service::ready},
      {"GET", "/startupz", &Service::ready},
      {"GET", "/health", &Service::ready},
      {"GET", "/v1/models", &Service::list_models},
      {"POST", "/v1/chat/completions", &Service::chat},
      {"POST", "/v1/completions", &Service::complete},
      {"POST", "/tokenize", &Service::tokenize},
      {"POST", "/detokenize", &Service::detokenize},
  };
  return kRoutes;
}

/// Whoever watches the process needs no key, and the page holds no data.
bool Service::needs_key(std::string_view path) const {
  if (path == kPagePath) return playground_ != Playground::kOpen;
  return path != kLivePath;
}

Service::Look Service::look_at(const http::Request& request) const {
  Look out;
  if (!access_.is_open() && needs_key(request.path)) {
    std::optional<Caller> caller = access_.identify(request);
    if (!caller) {
      std::string message = "this needs a key of this server: Authorization: Bearer KEY";
      if (request.path == kPagePath && playground_ == Playground::kOn) {
        message += "; with `triptych serve --playground-open` browsers get this page without one";
      }
      out.refusal = openai::error_response(401, message);
      out.refusal->headers.push_back({"WWW-Authenticate", "Bearer"});
      return out;
    }
    out.caller = std::move(*caller);
  }
  std::set<std::string_view> methods;
  for (const Route& route : routes()) {
    if (request.path != route.path) continue;
    if (request.path == kPagePath && playground_ == Playground::kOff) continue;
    methods.insert(route.method);
    // HEAD is GET without the body, which the connection leaves out.
    if (request.method == route.method || (request.method == "HEAD" && *route.method == 'G')) {
      out.route = &route;
      return out;
    }
  }
  if (methods.empty()) {
    out.refusal = openai::error_response(404, fmt::format("there is nothing at {}", request.path));
    return out;
  }
  const std::string allowed = fmt::format("{}", fmt::join(methods, ", "));
  out.refusal = openai::error_response(
      405, fmt::format("{} takes {}, not {}", request.path, allowed, request.method));
  out.refusal->headers.push_back({"Allow", allowed});
  return out;
}

std::optional<http::Response> Service::admit(const http::Request& head) {
  std::optional<http::Response> refusal = look_at(head).refusal;
  if (refusal) {
    refusal->headers.push_back({"x-request-id", given_id(head).value_or(new_id("req_"))});
  }
  return refusal;
}

void Service::handle(http::Request request, std::shared_ptr<Exchange> exchange) {
  std::string id = given_id(request).value_or(new_id("req_"));
  exchange = std::make_shared<IdentifiedExchange>(std::move(exchange), std::move(id));
  Look look = look_at(request);  // once more: keys may have changed while the body came
  if (look.refusal) return exchange->respond(std::move(*look.refusal));
  (this->*look.route->answer)({std::move(request), std::move(look.caller), std::move(exchange)});
}

void Service::page(Call call) { call.exchange->respond(playground_response()); }

void Service::live(Call call) { respond_json(*call.exchange, health_json("live")); }

void Service::ready(Call call) {
  for (const ServedModel& model : models_) {
    const EngineStatus status = model.engine->snapshot();
    if (status.health == EngineHealth::kReady) continue;
    const bool failed = status.health == EngineHealth::kFailed;
    return call.exchange->respond(openai::error_response(
        503, fmt::format("{} {}", model.names.front(),
                         failed ? "has failed; the log says why" : "is draining")));
  }
  respond_json(*call.exchange, health_json("ready"));
}

void Service::list_models(Call call) {
  Json list = Json::array();
  for (const ServedModel& model : models_) {
    for (const std::string& name : model.names) {
      Json json = Json::object();
      json.set("id", Json::string(name));
      json.set("object", Json::string("model"));
      json.set("created", Json::integer(model.loaded));
      json.set("owned_by", Json::string("triptych"));
      json.set("max_model_len", Json::integer(model.context_tokens));
      list.append(std::move(json));
    }
  }
  Json out = Json::object();
  out.set("object", Json::string("list"));
  out.set("data", std::move(list));
  respond_json(*call.exchange, out);
}

void Service::chat(Call call) { answer(call, AnswerForm::kChat); }

void Service::complete(Call call) { answer(call, AnswerForm::kCompletion); }

void Service::answer(const Call& call, AnswerForm form) {
  const Status status = start(call, form);
  if (!status.is_ok()) call.exchange->respond(openai::error_response(status));
}

Status Service::start(const Call& call, AnswerForm form) {
  const double start_ms = steady_ms();
  TRIPTYCH_ASSIGN_OR_RETURN(const Asked asked_of, read_body(call.request));
  const JsonRef body(asked_of.json, std::string(openai::kBody));
  const ServedModel* model = asked_of.model;
  const bool is_chat = form == AnswerForm::kChat;
  TRIPTYCH_ASSIGN_OR_RETURN(openai::Call asked,
                            is_chat ? openai::read_chat_call(body, model->defaults)
                                    : openai::read_completion_call(body, model->defaults));
  openai::AnswerHead head{.form = form,
                          .id = new_id(is_chat ? "chatcmpl-" : "cmpl-"),
                          .model = asked_of.name,
                          .created = seconds_now(),
                          .stream = asked.stream,
                          .include_usage = asked.include_usage,
                          .timings = asked.timings,
                          .echo = std::move(asked.echo),
                          .tools = std::move(asked.tools),
                          .call_format = {}};
  if (head.tools) {
    const Result<ToolCallFormat>& calls = model->prep->tool_calls();
    if (!calls.is_ok()) return calls.status().with_context(body.at("tools").path());
    head.call_format = *calls;
    if (head.tools->forced) {
      asked.request.sampling.grammar =
          forced_call_grammar(*calls, asked.request.tools, *head.tools->forced);
    }
  }
  const SamplingParams sampling = asked.request.sampling;
  SubmitOptions options{.tenant = call.caller.tenant};
  if (!asked.request.media.empty()) options.fetch_ms = steady_ms() - start_ms;
  TRIPTYCH_ASSIGN_OR_RETURN(
      const std::shared_ptr<TokenStream> stream,
      model->engine->submit(std::move(asked.request), options, pump_.signal()));
  const auto cancel = [engine = model->engine, id = stream->id()] { engine->cancel(id); };
  call.exchange->on_gone(cancel);
  pump_.add(stream,
            std::make_unique<openai::Answer>(std::move(head), model->prep->shared_tokenizer(),
                                             sampling, call.exchange, cancel));
  return Status::ok();
}

void Service::tokenize(Call call) { respond_result(*call.exchange, tokens_of(call.request)); }

void Service::detokenize(Call call) { respond_result(*call.exchange, text_of(call.request)); }

Result<Json> Service::tokens_of(const http::Request& request) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const Asked asked, read_body(request));
  const JsonRef body(asked.json, std::string(openai::kBody));
  return openai::tokenize(body, *asked.model->prep, asked.model->context_tokens);
}

Result<Json> Service::text_of(const http::Request& request) const {
  TRIPTYCH_ASSIGN_OR_RETURN(const Asked asked, read_body(request));
  const JsonRef body(asked.json, std::string(openai::kBody));
  return openai::detokenize(body, asked.model->prep->tokenizer());
}

Result<Service::Asked> Service::read_body(const http::Request& request) const {
  Asked out;
  TRIPTYCH_ASSIGN_OR_RETURN(out.json, parse_json(request.body, kJsonLimits));
  const JsonRef body(out.json, std::string(openai::kBody));
  TRIPTYCH_ASSIGN_OR_RETURN(out.name, openai::read_model_name(body));
  TRIPTYCH_ASSIGN_OR_RETURN(out.model, find(out.name));
  return out;
}

Result<const ServedModel*> Service::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) return it->second;
  std::vector<std::string_view> known;
  for (const auto& [known_name, model] : by_name_) known.push_back(known_name);
  return not_found(
      fmt::format("there is no model \"{}\"; there are {}", name, fmt::join(known, ", ")));
}

std::string Service::new_id(const char* prefix) {
  return fmt::format("{}{:016x}{:08x}", prefix, id_base_, ++n_ids_);
}

}  // namespace triptych
