#include "cli/perplexity.h"

#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/json.h"

namespace triptych::cli {

Status run_perplexity(const PerplexityOptions& options) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, read_file(options.file));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.session));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                            session->prep().tokenizer().encode(text, true));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<double> log_probabilities,
                            session->engine().score(ids, options.window));
  if (log_probabilities.empty()) {
    return invalid_argument(options.file + ": has fewer than two tokens");
  }
  double sum = 0;
  for (double p : log_probabilities) sum += p;
  const double perplexity = std::exp(-sum / static_cast<double>(log_probabilities.size()));
  if (!options.json) {
    fmt::print("perplexity {:.4f} over {} of {} tokens, windows of {}\n", perplexity,
               log_probabilities.size(), ids.size(), options.window);
    return Status::ok();
  }
  Json out = Json::object();
  out.set("perplexity", Json::number(perplexity));
  out.set("tokens", Json::integer(static_cast<int64_t>(log_probabilities.size())));
  out.set("window", Json::integer(options.window));
  fmt::print("{}\n", out.dump());
  return Status::ok();
}

}  // namespace triptych::cli
