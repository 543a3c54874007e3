#include "cli/sampling_flags.h"

#include <charconv>

#include "base/file.h"
#include "base/json.h"

namespace triptych::cli {
namespace {

// A grammar's own limit is below; this one keeps a wrong file from being read whole.
constexpr uint64_t kMaxGrammarFile = uint64_t{1} << 20;

Result<std::pair<int32_t, double>> parse_bias(const std::string& text) {
  std::pair<int32_t, double> out;
  const char* end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, out.first);
  if (id.ec == std::errc() && id.ptr != end && *id.ptr == '=') {
    const auto bias = std::from_chars(id.ptr + 1, end, out.second);
    if (bias.ec == std::errc() && bias.ptr == end) return out;
  }
  return invalid_argument("--logit-bias " + text + ": write ID=BIAS, as in 42=-100");
}

}  // namespace

Result<std::optional<GrammarSpec>> SamplingFlags::grammar() const {
  std::vector<GrammarSpec> specs;
  for (const auto& [kind, path] : {std::pair(GrammarKind::kJsonSchema, &json_schema_file),
                                   std::pair(GrammarKind::kLark, &lark_file)}) {
    if (path->empty()) continue;
    TRIPTYCH_ASSIGN_OR_RETURN(std::string text, read_file(*path, kMaxGrammarFile));
    specs.push_back({kind, std::move(text), *path});
  }
  if (!regex.empty()) specs.push_back({GrammarKind::kRegex, regex, "--regex"});
  if (!choices.empty()) {
    Json list = Json::array();
    for (const std::string& choice : choices) list.append(Json::string(choice));
    specs.push_back({GrammarKind::kChoice, list.dump(), "--choice"});
  }
  if (specs.size() > 1) {
    return invalid_argument("give one of --json-schema, --regex, --lark and --choice");
  }
  if (specs.empty()) return std::optional<GrammarSpec>();
  return std::optional<GrammarSpec>(std::move(specs[0]));
}

Result<SamplingParams> SamplingFlags::apply(SamplingParams out) const {
  if (temperature) out.temperature = *temperature;
  if (top_k) out.top_k = *top_k;
  if (top_p) out.top_p = *top_p;
  if (min_p) out.min_p = *min_p;
  if (typical_p) out.typical_p = *typical_p;
  if (repetition_penalty) out.repetition_penalty = *repetition_penalty;
  if (presence_penalty) out.presence_penalty = *presence_penalty;
  if (frequency_penalty) out.frequency_penalty = *frequency_penalty;
  for (const std::string& text : logit_bias) {
    TRIPTYCH_ASSIGN_OR_RETURN(const auto bias, parse_bias(text));
    out.logit_bias.push_back(bias);
  }
  out.seed = seed;
  out.logprobs = logprobs.has_value();
  out.top_logprobs = logprobs.value_or(0);
  out.min_tokens = min_tokens;
  out.max_tokens = max_tokens;
  out.stop = stop;
  out.stop_token_ids = stop_token_ids;
  out.ignore_eos = ignore_eos;
  TRIPTYCH_ASSIGN_OR_RETURN(out.grammar, grammar());
  return out;
}

}  // namespace triptych::cli
