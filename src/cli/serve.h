#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "server/http/http_server.h"
#include "server/service.h"

namespace triptych::cli {

struct ServeOptions {
  SessionOptions session;           ///< of each model, whose own path is one of `models`
  std::vector<std::string> models;  ///< folders of checkpoints, or .gguf files
  /// Further names: NAME of the first model, NAME=MODEL of the one that is called so by its folder.
  std::vector<std::string> aliases;
  std::string key_file;  ///< of AccessControl; empty: no keys, and loopback only
  size_t max_requests = PrepLimits().max_open;  ///< waiting or in work at once
  MediaSources sources;                         ///< of media that requests name
  std::string audit_file;                       ///< of AuditLog; empty: none
  http::ListenOptions listen;
  http::ServerLimits limits;
  Playground playground = Playground::kOn;
  bool no_sandbox = false;  ///< decode pictures in this process
  int drain_s = 30;         ///< for what is being answered when the server is told to end
  std::string version;      ///< of this program, for its metrics

  ServeOptions() { session.max_sequences = 16; }
};

/// What answers as a service does, which outlives the server.
http::Server::Callbacks callbacks_of(Service& service);

/// Serves models over HTTP until SIGTERM or SIGINT, then lets what is being answered end. SIGHUP
/// reads the keys again.
Status run_serve(const ServeOptions& options);
/// Prints a new API key to stdout, and to stderr what its line in the key file is.
Status run_key(const std::string& name);

}  // namespace triptych::cli
