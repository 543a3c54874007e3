#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "server/http/http_server.h"
#include "server/service.h"

namespace triptych::cli {

struct ServeOptions {
  SessionOptions session;
  std::vector<std::string> aliases;  ///< further names of the model; its first is its folder's
  std::string key_file;              ///< of AccessControl; empty: no keys, and loopback only
  size_t max_requests = PrepLimits().max_open;  ///< waiting or in work at once
  http::ListenOptions listen;
  http::ServerLimits limits;
  int drain_s = 30;         ///< for what is being answered when the server is told to end
  bool no_sandbox = false;  ///< decode pictures in this process

  ServeOptions() { session.max_sequences = 16; }
};

/// What answers as a service does, which outlives the server.
http::Server::Callbacks callbacks_of(Service& service);

/// Serves a model over HTTP until SIGTERM or SIGINT, then lets what is being answered end. SIGHUP
/// reads the keys again.
Status run_serve(const ServeOptions& options);
/// Prints a new API key to stdout, and to stderr what its line in the key file is.
Status run_key(const std::string& name);

}  // namespace triptych::cli
