#include "cli/serve.h"

#include <fmt/format.h>
#include <signal.h>

#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/log.h"
#include "cli/systemd.h"
#include "cli/terminal.h"
#include "observe/metric_table.h"

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

/// Models that are loaded, in the order they were named.
struct Loaded {
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<ServedModel> models;
};

Result<Loaded> load_models(const ServeOptions& options, const SessionOptions& session_options) {
  Loaded out;
  for (const std::string& path : options.models) {
    SessionOptions own = session_options;
    own.model = path;
    own.memory_cap_bytes /= options.models.size();
    TRIPTYCH_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::open(own));
    out.models.push_back({.names = {model_name(path)},
                          .engine = nullptr,
                          .prep = session->shared_prep(),
                          .defaults = default_sampling(session->runner().model().spec),
                          .context_tokens = session->context_tokens(),
                          .loaded = std::time(nullptr)});
    out.sessions.push_back(std::move(session));
  }
  return out;
}

/// Adds the aliases. Every name is one model's.
Status add_names(const std::vector<std::string>& aliases, std::vector<ServedModel>& models) {
  std::set<std::string> taken;
  for (const ServedModel& model : models) {
    if (!taken.insert(model.names.front()).second) {
      return invalid_argument(fmt::format("two models are called {}", model.names.front()));
    }
  }
  for (const std::string& alias : aliases) {
    const size_t equals = alias.find('=');
    const std::string name = alias.substr(0, equals);
    const auto model = equals == std::string::npos
                           ? models.begin()
                           : std::find_if(models.begin(), models.end(), [&](const ServedModel& m) {
                               return m.names.front() == alias.substr(equals + 1);
                             });
    if (model == models.end()) {
      return invalid_argument(fmt::format("--alias {}: no model is called so", alias));
    }
    if (name.empty() || !taken.insert(name).second) {
      return invalid_argument(fmt::format("--alias {}: the name is empty or taken", alias));
    }
    model->names.push_back(name);
  }
  return Status::ok();
}

std::string url_of(const http::ListenOptions& listen, uint16_t port) {
  const char* scheme = listen.tls.certificate.empty() ? "http" : "https";
  if (!listen.unix_socket.empty()) return fmt::format("{}://localhost", scheme);
  const bool v6 = listen.host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", scheme, v6 ? "[" : "", listen.host, v6 ? "]" : "", port);
}

void print_page(const ServeOptions& options, const std::string& url) {
  if (options.playground == Playground::kOff || !options.listen.unix_socket.empty()) return;
  const bool locked = options.playground == Playground::kOn && !options.key_file.empty();
  fmt::print(stderr, "page: {}/{}\n", url,
             locked ? ", with a key only; --playground open lets browsers have it" : "");
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

void print_ready(const ServeOptions& options, const Loaded& loaded,
                 const std::vector<MemoryPlan>& plans, uint16_t port) {
  const Colors c = Colors::for_fd(2);
  const http::ListenOptions& listen = options.listen;
  const std::string url = url_of(listen, port);
  for (size_t i = 0; i < plans.size(); ++i) {
    fmt::print(stderr, "{}ready{} {} at {}\n", c.green, c.reset,
               fmt::join(loaded.models[i].names, ", "),
               listen.unix_socket.empty() ? url : listen.unix_socket);
    print_memory(plans[i]);
  }
  print_page(options, url);
  const std::string socket =
      listen.unix_socket.empty() ? "" : fmt::format("--unix-socket {} ", listen.unix_socket);
  fmt::print(stderr,
             "try:  curl {}{}/v1/chat/completions {}-d '{{\"model\": \"{}\", \"messages\": "
             "[{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'\n",
             socket, url, options.key_file.empty() ? "" : "-H 'Authorization: Bearer KEY' ",
             loaded.models.front().names.front());
}

/// Without keys nobody but this machine may ask.
Status load_keys(const ServeOptions& options, AccessControl& access) {
  if (!options.key_file.empty()) {
    TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, read_file(options.key_file));
    return access.load(text, options.key_file);
  }
  if (!options.listen.unix_socket.empty() ||
      std::find(std::begin(kLoopback), std::end(kLoopback), options.listen.host) !=
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
          .refusal = [&](int status,
                         std::string_view reason) { return service.refuse(status, reason); },
          .admission = [&](const http::Request& head) { return service.admit(head); },
          .observer = &service.connections()};
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
  TRIPTYCH_ASSIGN_OR_RETURN(Loaded loaded, load_models(options, session_options));
  TRIPTYCH_RETURN_IF_ERROR(add_names(options.aliases, loaded.models));
  MetricsRegistry registry;
  registry
      .gauge(family_of(Metric::kBuildInfo),
             {options.version, loaded.sessions.front()->runner().backend().level})
      ->set(1);
  std::vector<MemoryPlan> plans;
  for (size_t i = 0; i < loaded.models.size(); ++i) {
    plans.push_back(loaded.sessions[i]->runner().plan());
    loaded.models[i].engine = loaded.sessions[i]->start(options.max_requests);
  }
  std::unique_ptr<MediaSource> sources;
  if (!options.sources.hosts.empty() || !options.sources.folders.empty()) {
    TRIPTYCH_ASSIGN_OR_RETURN(sources, MediaSource::make(options.sources));
  }
  std::unique_ptr<AuditLog> audit;
  if (!options.audit_file.empty()) {
    TRIPTYCH_ASSIGN_OR_RETURN(audit, AuditLog::open(options.audit_file));
  }
  Service service(
      loaded.models, access, registry,
      {.sources = std::move(sources), .audit = audit.get(), .playground = options.playground});
  TRIPTYCH_RETURN_IF_ERROR(registry.status());
  TRIPTYCH_ASSIGN_OR_RETURN(
      const std::unique_ptr<http::Server> server,
      http::Server::start(options.listen, options.limits, callbacks_of(service)));
  print_ready(options, loaded, plans, server->port());
  const bool takes_pictures =
      std::any_of(loaded.models.begin(), loaded.models.end(),
                  [](const ServedModel& model) { return model.prep->recipe().has_value(); });
  if (takes_pictures) print_decoding(session_options.sandbox.get());
  tell_systemd("READY=1");
  while (signals.wait() == SIGHUP) {
    const Status status = load_keys(options, access);
    if (!status.is_ok()) log_error(status.message() + "; the keys stay as they are");
    const Status reopened = audit == nullptr ? Status::ok() : audit->reopen();
    if (!reopened.is_ok()) log_error(reopened.message() + "; the old file goes on");
  }
  tell_systemd("STOPPING=1");
  fmt::print(stderr, "draining: no new requests, {} s for those in work\n", options.drain_s);
  if (!server->drain(std::chrono::seconds(options.drain_s))) {
    fmt::print(stderr, "not all answers ended in time; the rest is cut off\n");
  }
  return Status::ok();
}

}  // namespace triptych::cli
