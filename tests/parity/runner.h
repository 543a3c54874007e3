#pragma once

#include <memory>
#include <string>

#include "backends/backend_list.h"
#include "engine/engine.h"
#include "prep/preprocessor.h"

namespace triptych::parity {

/// A checkpoint with preprocessing and engine, ready to answer.
struct Runner {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Preprocessor> prep;
  std::unique_ptr<Engine> engine;

  /// Two threads whatever `options` says, so that tests also run what threads share.
  static Result<Runner> open(const std::string& path, EngineOptions options = {}) {
    Runner out;
    options.settings.threads = "2";
    // Each run computes all of its rows: taps and comparisons need them.
    options.turn_caches_off();
    TRIPTYCH_ASSIGN_OR_RETURN(out.checkpoint, Checkpoint::open(path));
    TRIPTYCH_ASSIGN_OR_RETURN(const ModelSpec spec, parse_model_spec(*out.checkpoint));
    TRIPTYCH_ASSIGN_OR_RETURN(out.prep, Preprocessor::load(*out.checkpoint, spec));
    TRIPTYCH_ASSIGN_OR_RETURN(const Backend backend, backends().front().make(options.settings));
    TRIPTYCH_ASSIGN_OR_RETURN(out.engine, Engine::load(*out.checkpoint, backend, options));
    return out;
  }

  Result<PreparedRequest> prepare(const Request& request) {
    return prep->prepare(request, engine->model_runner().plan().context_tokens,
                         engine->model_runner().pool(), engine->model_runner().registry());
  }
};

}  // namespace triptych::parity
