#include "server/service.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "base/clock.h"
#include "server/openai/chat_answer.h"
#include "server/openai/chat_request.h"
#include "server/openai/error.h"

namespace triptych {
namespace {

using http::Exchange;

constexpr JsonLimits kJsonLimits{.max_depth = 64};

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void respond_json(Exchange& exchange, const Json& json) {
  exchange.respond({.headers = {}, .body = json.dump()});
}

Json health_json(const char* status) {
  Json out = Json::object();
  out.set("status", Json::string(status));
  return out;
}

}  // namespace

Service::Service(std::vector<ServedModel> models) : models_(std::move(models)) {
  std::random_device random;
  id_base_ = (uint64_t{random()} << 32) | random();
  for (const ServedModel& model : models_) {
    for (const std::string& name : model.names) by_name_.emplace(name, &model);
  }
}

const std::vector<Service::Route>& Service::routes() {
  static const std::vector<Route> kRoutes = {
      {"GET", "/livez", &Service::live},
      {"GET", "/readyz", &Service::ready},
      {"GET", "/startupz", &Service::ready},
      {"GET", "/health", &Service::ready},
      {"GET", "/v1/models", &Service::list_models},
      {"POST", "/v1/chat/completions", &Service::chat},
  };
  return kRoutes;
}

void Service::handle(http::Request request, std::shared_ptr<Exchange> exchange) {
  std::set<std::string_view> methods;
  for (const Route& route : routes()) {
    if (request.path != route.path) continue;
    // HEAD is GET without the body, which the connection leaves out.
    if (request.method == route.method || (request.method == "HEAD" && *route.method == 'G')) {
      return (this->*route.answer)(request, std::move(exchange));
    }
    methods.insert(route.method);
  }
  if (methods.empty()) {
    return exchange->respond(
        openai::error_response(404, fmt::format("there is nothing at {}", request.path)));
  }
  http::Response refusal = openai::error_response(
      405,
      fmt::format("{} takes {}, not {}", request.path, fmt::join(methods, ", "), request.method));
  refusal.headers.push_back({"Allow", fmt::format("{}", fmt::join(methods, ", "))});
  exchange->respond(std::move(refusal));
}

void Service::live(const http::Request&, std::shared_ptr<Exchange> exchange) {
  respond_json(*exchange, health_json("live"));
}

void Service::ready(const http::Request&, std::shared_ptr<Exchange> exchange) {
  for (const ServedModel& model : models_) {
    const EngineStatus status = model.engine->snapshot();
    if (status.health == EngineHealth::kReady) continue;
    const bool failed = status.health == EngineHealth::kFailed;
    return exchange->respond(openai::error_response(
        503, fmt::format("{} {}", model.names.front(),
                         failed ? "has failed; the log says why" : "is draining")));
  }
  respond_json(*exchange, health_json("ready"));
}

void Service::list_models(const http::Request&, std::shared_ptr<Exchange> exchange) {
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
  respond_json(*exchange, out);
}

void Service::chat(const http::Request& request, std::shared_ptr<Exchange> exchange) {
  const Status status = start_chat(request, exchange);
  if (!status.is_ok()) exchange->respond(openai::error_response(status));
}

Status Service::start_chat(const http::Request& request, std::shared_ptr<Exchange> exchange) {
  const double start = steady_ms();
  TRIPTYCH_ASSIGN_OR_RETURN(const Json json, parse_json(request.body, kJsonLimits));
  const JsonRef body(json, std::string(openai::kBody));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string name, openai::read_model_name(body));
  TRIPTYCH_ASSIGN_OR_RETURN(const ServedModel* model, find(name));
  TRIPTYCH_ASSIGN_OR_RETURN(openai::ChatCall call, openai::read_chat_call(body, model->defaults));
  const SamplingParams sampling = call.request.sampling;
  SubmitOptions options;
  if (!call.request.media.empty()) options.fetch_ms = steady_ms() - start;
  TRIPTYCH_ASSIGN_OR_RETURN(
      const std::shared_ptr<TokenStream> stream,
      model->engine->submit(std::move(call.request), options, pump_.signal()));
  const auto cancel = [engine = model->engine, id = stream->id()] { engine->cancel(id); };
  exchange->on_gone(cancel);
  pump_.add(stream, std::make_unique<openai::ChatAnswer>(
                        openai::ChatHead{.id = new_id("chatcmpl-"),
                                         .model = name,
                                         .created = seconds_now(),
                                         .stream = call.stream,
                                         .include_usage = call.include_usage},
                        model->tokenizer, sampling, std::move(exchange), cancel));
  return Status::ok();
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
