#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/multimodal_engine.h"
#include "server/answer_pump.h"
#include "server/http/http.h"
#include "text/tokenizer.h"

namespace triptych {

/// A model that answers, under one name or several.
struct ServedModel {
  std::vector<std::string> names;  ///< the first one is its own, the others are aliases
  std::shared_ptr<MultiModalEngine> engine;
  std::shared_ptr<const Tokenizer> tokenizer;
  SamplingParams defaults;  ///< of requests that say nothing
  int64_t context_tokens = 0;
  int64_t loaded = 0;  ///< seconds since 1970
};

/// The routes of the server: which handler answers what. Thread-safe.
class Service {
 public:
  explicit Service(std::vector<ServedModel> models);

  /// Answers a request, now or when its tokens come (http::Handler).
  void handle(http::Request request, std::shared_ptr<http::Exchange> exchange);

 private:
  using Answer = void (Service::*)(const http::Request&, std::shared_ptr<http::Exchange>);
  struct Route {
    const char* method;
    const char* path;
    Answer answer;
  };
  static const std::vector<Route>& routes();

  void live(const http::Request& request, std::shared_ptr<http::Exchange> exchange);
  void ready(const http::Request& request, std::shared_ptr<http::Exchange> exchange);
  void list_models(const http::Request& request, std::shared_ptr<http::Exchange> exchange);
  void chat(const http::Request& request, std::shared_ptr<http::Exchange> exchange);
  Status start_chat(const http::Request& request, std::shared_ptr<http::Exchange> exchange);
  Result<const ServedModel*> find(const std::string& name) const;
  std::string new_id(const char* prefix);

  const std::vector<ServedModel> models_;
  std::map<std::string, const ServedModel*, std::less<>> by_name_;
  uint64_t id_base_ = 0;  ///< random, so that no other run's ids come again
  std::atomic<uint32_t> n_ids_ = 0;
  AnswerPump pump_;
};

}  // namespace triptych
