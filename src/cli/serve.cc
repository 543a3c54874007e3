#include "cli/serve.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "cli/terminal.h"
#include "server/openai/error.h"

namespace triptych::cli {
namespace {

constexpr const char* kLoopback[] = {"127.0.0.1", "::1"};

/// The signals that tell a server something. Made before any thread is, so that none of them gets
/// the signals.
class Signals {
 public:
  Signals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  int wait() const {
    int signal = 0;
    while (sigwait(&signals_, &signal) != 0) {
    }
    return signal;
  }

 private:
  sigset_t signals_;
};

std::string model_name(const std::string& path) {
  const std::filesystem::path clean = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path name = clean.has_filename() ? clean : clean.parent_path();
  return name.extension() == ".gguf" ? name.stem() : name.filename();
}

/// Tells where pictures are decoded.
void print_decoding(const Sandbox* sandbox) {
  if (sandbox == nullptr) {
    fmt::print(stderr, "pictures: decoded in this process (--no-sandbox)\n");
    return;
  }
  fmt::print(stderr, "pictures: decoded by {} sandboxed processes{}\n", sandbox->n_workers(),
             sandbox->is_filtered() ? "" : ", without a filter of system calls");
}

void print_ready(const ServeOptions& options, const ServedModel& model, const MemoryPlan& plan,
                 uint16_t port) {
  const Colors c = Colors::for_fd(2);
  const bool v6 = options.listen.host.find(':') != std::string::npos;
  const std::string url =
      fmt::format("http://{}{}{}:{}", v6 ? "[" : "", options.listen.host, v6 ? "]" : "", port);
  fmt::print(stderr, "{}ready{} {} at {}\n", c.green, c.reset, model.names.front(), url);
  print_memory(plan);
  fmt::print(stderr,
             "try:  curl {}/v1/chat/completions {}-d '{{\"model\": \"{}\", \"messages\": "
             "[{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'\n",
             url, options.key_file.empty() ? "" : "-H 'Authorization: Bearer KEY' ",
             model.names.front());
}

/// Without keys nobody but this machine may ask.
Status load_keys(const ServeOptions& options, AccessControl& access) {
  if (!options.key_file.empty()) {
    TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, read_file(options.key_file));
    return access.load(text, options.key_file);
  }
  if (std::find(std::begin(kLoopback), std::end(kLoopback), options.listen.host) !=
      std::end(kLoopback)) {
    return Status::ok();
  }
  return invalid_argument(fmt::format(
      "--host {}: without --api-keys the server listens at 127.0.0.1 or ::1 only; `triptych key "
      "NAME` makes a key",
      options.listen.host));
}

}  // namespace

http::Server::Callbacks callbacks_of(Service& service) {
  return {.handler =
              [&](http::Request request, std::shared_ptr<http::Exchange> exchange) {
                service.handle(std::move(request), std::move(exchange));
              },
          .refusal = [](int status,
                        std::string_view reason) { return openai::error_response(status, reason); },
          .admission = [&](const http::Request& head) { return service.admit(head); }};
}

Status run_key(const std::string& name) {
  TRIPTYCH_ASSIGN_OR_RETURN(const NewApiKey key, new_api_key(name));
  fmt::print("{}\n", key.key);
  fmt::print(stderr, "the key is shown this once; add this line to the file of --api-keys:\n{}\n",
             key.line);
  return Status::ok();
}

Status run_serve(const ServeOptions& options) {
  const Signals signals;
  // Forks, so it comes before threads, and before anything that decoders need not know.
  SessionOptions session_options = options.session;
  if (!options.no_sandbox) {
    TRIPTYCH_ASSIGN_OR_RETURN(session_options.sandbox,
                              Sandbox::start({.workers = PrepLimits().threads}));
  }
  AccessControl access;
  TRIPTYCH_RETURN_IF_ERROR(load_keys(options, access));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(session_options));
  const MemoryPlan plan = session->runner().plan();
  ServedModel model{.names = {model_name(options.session.model)},
                    .engine = nullptr,
                    .prep = session->shared_prep(),
                    .defaults = default_sampling(session->runner().model().spec),
                    .context_tokens = session->context_tokens(),
                    .loaded = std::time(nullptr)};
  model.names.insert(model.names.end(), options.aliases.begin(), options.aliases.end());
  model.engine = session->start(options.max_requests);
  Service service({model}, access);
  TRIPTYCH_ASSIGN_OR_RETURN(
      const std::unique_ptr<http::Server> server,
      http::Server::start(options.listen, options.limits, callbacks_of(service)));
  print_ready(options, model, plan, server->port());
  if (model.prep->recipe()) print_decoding(session_options.sandbox.get());
  while (signals.wait() == SIGHUP) {
    const Status status = load_keys(options, access);
    if (!status.is_ok()) log_error(status.message() + "; the keys stay as they are");
  }
  fmt::print(stderr, "draining: no new requests, {} s for those in work\n", options.drain_s);
  if (!server->drain(std::chrono::seconds(options.drain_s))) {
    fmt::print(stderr, "not all answers ended in time; the rest is cut off\n");
  }
  return Status::ok();
}

}  // namespace triptych::cli
