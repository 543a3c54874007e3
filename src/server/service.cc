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
constexpr const char* kChatPath = "/v1/chat/completions";
constexpr const char* kCompletionPath = "/v1/completions";
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

/// Puts the request's id on whatever is answered, and counts it.
class IdentifiedExchange final : public Exchange {
 public:
  using Count = std::function<void(int http_status)>;
  IdentifiedExchange(std::shared_ptr<Exchange> exchange, std::string id, Count count,
                     std::shared_ptr<AuditRecord> record)
      : exchange_(std::move(exchange)),
        id_(std::move(id)),
        count_(std::move(count)),
        record_(std::move(record)) {}

  void respond(http::Response response) override {
    note(response.status);
    exchange_->respond(with_id(std::move(response)));
  }
  void start_stream(http::Response head) override {
    note(head.status);
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

  void note(int http_status) {
    count_(http_status);
    if (record_ != nullptr) record_->http_status = http_status;
  }

  std::shared_ptr<Exchange> exchange_;
  std::string id_;
  Count count_;
  std::shared_ptr<AuditRecord> record_;
};

std::vector<ServerMetrics::Model> watched(const std::vector<ServedModel>& models) {
  std::vector<ServerMetrics::Model> out;
  for (const ServedModel& model : models) out.push_back({model.names.front(), model.engine});
  return out;
}

Json health_json(const char* status) {
  Json out = Json::object();
  out.set("status", Json::string(status));
  return out;
}

}  // namespace

Service::Service(std::vector<ServedModel> models, const AccessControl& access,
                 MetricsRegistry& registry, ServiceParts parts)
    : models_(std::move(models)),
      access_(access),
      audit_(parts.audit),
      playground_(parts.playground),
      metrics_(registry, watched(models_), {paths(), {kChatPath, kCompletionPath}}),
      sources_(std::move(parts.sources)) {
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
      {"GET", "/metrics", &Service::metrics},
      {"GET", "/v1/models", &Service::list_models},
      {"POST", kChatPath, &Service::chat},
      {"POST", kCompletionPath, &Service::complete},
      {"POST", "/tokenize", &Service::tokenize},
      {"POST", "/detokenize", &Service::detokenize},
  };
  return kRoutes;
}

std::vector<std::string_view> Service::paths() {
  std::vector<std::string_view> out;
  for (const Route& route : routes()) out.emplace_back(route.path);
  return out;
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
        message += "; with `triptych serve --playground open` browsers get this page without one";
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
  Look look = look_at(head);
  if (!look.refusal) return std::nullopt;
  metrics_.refused(look.refusal->status);
  const std::string id = given_id(head).value_or(new_id("req_"));
  if (const auto record = make_record(head, id, look.caller)) {
    record->http_status = look.refusal->status;
  }
  look.refusal->headers.push_back({"x-request-id", id});
  return std::move(look.refusal);
}

void Service::handle(http::Request request, std::shared_ptr<Exchange> exchange) {
  const std::string id = given_id(request).value_or(new_id("req_"));
  Look look = look_at(request);  // once more: keys may have changed while the body came
  std::shared_ptr<AuditRecord> record = make_record(request, id, look.caller);
  exchange = std::make_shared<IdentifiedExchange>(
      std::move(exchange), id,
      [this, path = request.path](int status) { metrics_.answered(path, status); }, record);
  if (look.refusal) return exchange->respond(std::move(*look.refusal));
  (this->*look.route->answer)(
      {std::move(request), std::move(look.caller), std::move(exchange), std::move(record)});
}

/// Null where nobody wants any.
std::shared_ptr<AuditRecord> Service::make_record(const http::Request& request,
                                                  const std::string& id,
                                                  const Caller& caller) const {
  if (audit_ == nullptr) return nullptr;
  auto out = std::make_shared<AuditRecord>(*audit_, steady_ms());
  out->request = id;
  out->key = caller.name;
  out->client = request.client;
  out->method = request.method;
  out->path = request.path;
  out->body_bytes = request.body.size();
  return out;
}

http::Response Service::refuse(int status, std::string_view reason) {
  metrics_.refused(status);
  return openai::error_response(status, reason);
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

void Service::metrics(Call call) {
  const MetricsFormat format = metrics_format_for(call.request.header("Accept"));
  call.exchange->respond({.content_type = std::string(metrics_content_type(format)),
                          .headers = {},
                          .body = metrics_.page(format)});
}

void Service::chat(Call call) { answer(std::move(call), AnswerForm::kChat); }

void Service::complete(Call call) { answer(std::move(call), AnswerForm::kCompletion); }

void Service::answer(Call call, AnswerForm form) {
  const Result<Asked> asked = read_body(call.request);
  if (!asked.is_ok()) {
    metrics_.refused(asked.status());
    return call.exchange->respond(openai::error_response(asked.status()));
  }
  if (call.record != nullptr) call.record->model = asked->name;
  QuotaBook::Entry place = quotas_.enter(call.caller, steady_ms());
  if (place.refusal) {
    metrics_.refused(429);
    return call.exchange->respond(
        openai::rate_limit_response(place.refusal->reason, place.refusal->retry_ms));
  }
  call.quota = std::move(place.ticket);
  const std::string path = call.request.path;
  const std::shared_ptr<Exchange> exchange = call.exchange;
  const Status status = start(std::move(call), form, *asked);
  if (!status.is_ok()) refuse(*exchange, *asked->model, path, status);
}

void Service::refuse(Exchange& exchange, const ServedModel& model, const std::string& path,
                     const Status& status) {
  http::Response refusal = openai::error_response(status);
  metrics_.answers(model.names.front(), path)
      .ended({.http_status = refusal.status, .error = status.code()});
  exchange.respond(std::move(refusal));
}

Status Service::start(Call call, AnswerForm form, const Asked& asked_of) {
  Start out{.call = std::move(call), .asked = {}, .head = {}};
  out.call.request.body.clear();
  const JsonRef body(asked_of.json, std::string(openai::kBody));
  out.model = asked_of.model;
  const bool is_chat = form == AnswerForm::kChat;
  const SamplingParams& defaults = out.model->defaults;
  TRIPTYCH_ASSIGN_OR_RETURN(
      out.asked, is_chat ? openai::read_chat_call(body, defaults, {.sources = sources_.get()})
                         : openai::read_completion_call(body, defaults));
  out.head = {.form = form,
              .id = new_id(is_chat ? "chatcmpl-" : "cmpl-"),
              .model = asked_of.name,
              .created = seconds_now(),
              .stream = out.asked.stream,
              .include_usage = out.asked.include_usage,
              .timings = out.asked.timings,
              .echo = std::move(out.asked.echo),
              .tools = std::move(out.asked.tools),
              .call_format = {}};
  if (out.head.tools) {
    const Result<ToolCallFormat>& calls = out.model->prep->tool_calls();
    if (!calls.is_ok()) return calls.status().with_context(body.at("tools").path());
    out.head.call_format = *calls;
    if (out.head.tools->forced) {
      out.asked.request.sampling.grammar =
          forced_call_grammar(*calls, out.asked.request.tools, *out.head.tools->forced);
    }
  }
  return out.asked.named_media.empty() ? submit(out) : fetch(std::move(out));
}

/// Goes on with submit() when the media are there. What cannot be had is the caller's fault.
Status Service::fetch(Start start) {
  std::vector<std::string> names;
  std::vector<std::string> labels;
  for (const openai::NamedMedia& named : start.asked.named_media) {
    names.push_back(named.name);
    labels.push_back(start.asked.request.media[named.media].name);
  }
  const auto kept = std::make_shared<Start>(std::move(start));
  const auto go_on = [this, kept](Result<std::vector<std::string>> bytes) {
    Status status = bytes.status();
    if (status.is_ok()) {
      for (size_t i = 0; i < bytes->size(); ++i) {
        kept->asked.request.media[kept->asked.named_media[i].media].bytes =
            std::make_shared<const std::string>(std::move((*bytes)[i]));
      }
      status = submit(*kept);
    } else if (openai::http_status(status.code()) < 500) {
      status = invalid_argument(status.message());
    }
    if (status.is_ok()) return;
    refuse(*kept->call.exchange, *kept->model, kept->call.request.path, status);
  };
  return sources_->fetch(std::move(names), std::move(labels), go_on);
}

Status Service::submit(Start& start) {
  const std::shared_ptr<AuditRecord>& record = start.call.record;
  uint64_t media_bytes = 0;
  for (const MediaItem& item : start.asked.request.media) media_bytes += item.bytes->size();
  if (record != nullptr) {
    record->n_media = static_cast<int64_t>(start.asked.request.media.size());
    record->media_bytes = media_bytes;
  }
  TRIPTYCH_RETURN_IF_ERROR(start.call.quota->take_media(media_bytes, steady_ms()));
  const SamplingParams sampling = start.asked.request.sampling;
  const http::Request& request = start.call.request;
  SubmitOptions options{.tenant = start.call.caller.tenant};
  if (!start.asked.request.media.empty()) options.fetch_ms = steady_ms() - request.arrived_ms;
  const std::shared_ptr<MultiModalEngine>& engine = start.model->engine;
  TRIPTYCH_ASSIGN_OR_RETURN(
      const std::shared_ptr<TokenStream> stream,
      engine->submit(std::move(start.asked.request), options, pump_.signal()));
  const auto cancel = [engine, id = stream->id()] { engine->cancel(id); };
  start.call.exchange->on_gone(cancel);
  openai::AnswerWatch watch(metrics_.answers(start.model->names.front(), request.path),
                            start.head.id, request.arrived_ms, static_cast<size_t>(sampling.n));
  watch.also_tell([record, quota = start.call.quota](const openai::AnswerEnd& end) {
    quota->spend_tokens(end.prompt_tokens + end.completion_tokens, steady_ms());
    if (record == nullptr) return;
    record->finish = finish_reason_name(end.finish);
    record->prompt_tokens = end.prompt_tokens;
    record->completion_tokens = end.completion_tokens;
  });
  pump_.add(stream, std::make_unique<openai::Answer>(
                        std::move(start.head), start.model->prep->shared_tokenizer(), sampling,
                        start.call.exchange, cancel, std::move(watch)));
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
