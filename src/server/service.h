#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/multimodal_engine.h"
#include "prep/preprocessor.h"
#include "server/access.h"
#include "server/answer_pump.h"
#include "server/audit.h"
#include "server/http/http.h"
#include "server/openai/answer.h"
#include "server/openai/call_fields.h"
#include "server/quota.h"
#include "server/remote/media_source.h"
#include "server/server_metrics.h"

namespace triptych {

/// A model that answers, under one name or several.
struct ServedModel {
  std::vector<std::string> names;  ///< the first one is its own, the others are aliases
  std::shared_ptr<MultiModalEngine> engine;
  std::shared_ptr<const Preprocessor> prep;
  SamplingParams defaults;  ///< of requests that say nothing
  int64_t context_tokens = 0;
  int64_t loaded = 0;  ///< seconds since 1970
};

/// Who gets the page at "/": nobody, whoever may use the API, or everybody.
enum class Playground : uint8_t { kOff, kOn, kOpen };

/// What a service may have beside its models.
struct ServiceParts {
  std::unique_ptr<MediaSource> sources = nullptr;  ///< of media that requests name; null: none
  AuditLog* audit = nullptr;  ///< where requests are noted, outlives the service; null: nowhere
  Playground playground = Playground::kOn;
};

/// The routes of the server: which handler answers what. Thread-safe.
class Service {
 public:
  /// `access` and `registry` outlive the service, which says what it does in the latter.
  Service(std::vector<ServedModel> models, const AccessControl& access, MetricsRegistry& registry,
          ServiceParts parts = {});

  /// The answer to a request without a key, or to no route, by its head (http::Admission).
  std::optional<http::Response> admit(const http::Request& head);
  /// Answers a request, now or when its tokens come (http::Handler).
  void handle(http::Request request, std::shared_ptr<http::Exchange> exchange);
  /// The answer to what is no request, or over a limit (http::Server::Refusal).
  http::Response refuse(int status, std::string_view reason);
  /// What the server of this service is to tell of its connections.
  http::ConnectionObserver& connections() { return metrics_; }

 private:
  /// A request whose caller is known.
  struct Call {
    http::Request request;
    Caller caller;
    std::shared_ptr<http::Exchange> exchange;
    std::shared_ptr<AuditRecord> record = nullptr;  ///< null: nobody keeps any
    std::shared_ptr<QuotaTicket> quota = nullptr;
  };
  struct Route {
    const char* method;
    const char* path;
    void (Service::*answer)(Call);
  };
  static const std::vector<Route>& routes();
  static std::vector<std::string_view> paths();
  /// What a request's head says of it: who asks for what, or why it is refused.
  struct Look {
    Caller caller;
    const Route* route = nullptr;
    std::optional<http::Response> refusal;
  };
  Look look_at(const http::Request& request) const;
  bool needs_key(std::string_view path) const;

  void page(Call call);
  void live(Call call);
  void ready(Call call);
  void list_models(Call call);
  void metrics(Call call);
  void chat(Call call);
  void complete(Call call);
  void tokenize(Call call);
  void detokenize(Call call);
  void answer(Call call, openai::AnswerForm form);
  /// Answers a request to a model with an error.
  void refuse(http::Exchange& exchange, const ServedModel& model, const std::string& path,
              const Status& status);
  /// An answer whose media are still to be fetched, or not even that.
  struct Start {
    Call call;
    const ServedModel* model = nullptr;
    openai::Call asked;
    openai::AnswerHead head;
  };
  Status fetch(Start start);
  Status submit(Start& start);
  /// A body that names one of our models.
  struct Asked {
    Json json;
    std::string name;
    const ServedModel* model = nullptr;
  };
  Status start(Call call, openai::AnswerForm form, const Asked& asked_of);
  Result<Asked> read_body(const http::Request& request) const;
  Result<Json> tokens_of(const http::Request& request) const;
  Result<Json> text_of(const http::Request& request) const;
  Result<const ServedModel*> find(const std::string& name) const;
  std::string new_id(const char* prefix);
  std::shared_ptr<AuditRecord> make_record(const http::Request& request, const std::string& id,
                                           const Caller& caller) const;

  const std::vector<ServedModel> models_;
  const AccessControl& access_;
  AuditLog* const audit_;
  const Playground playground_;
  QuotaBook quotas_;
  ServerMetrics metrics_;
  std::map<std::string, const ServedModel*, std::less<>> by_name_;
  uint64_t id_base_ = 0;  ///< random, so that no other run's ids come again
  std::atomic<uint32_t> n_ids_ = 0;
  AnswerPump pump_;
  const std::unique_ptr<MediaSource> sources_;  // the last: its threads use all the rest
};

}  // namespace triptych
