// Replays the goldens that tools/parity made with Hugging Face transformers: pixels, ids, tensors
// at every stage boundary, logits and greedy tokens, for every spelling of a checkpoint and every
// CPU level of this machine.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/cpu_isa.h"
#include "parity/golden.h"
#include "parity/runner.h"

namespace triptych::parity {
namespace {

struct Variant {
  std::string golden;
  std::string isa;
  bool bf16_activations;
};

std::ostream& operator<<(std::ostream& out, const Variant& v) {
  return out << v.golden << " " << v.isa << (v.bf16_activations ? " bf16" : " f32");
}

Result<Runner> open(const std::string& path, const Variant& variant, int64_t chunk_rows) {
  EngineOptions options;
  options.settings.cpu_isa = variant.isa;
  options.settings.matmul = variant.bf16_activations ? "bf16" : "f32";
  options.settings.kv_dtype = "f32";  // as transformers keeps it when it runs in float32
  options.limits.chunk_rows = chunk_rows;
  return Runner::open(path, options);
}

struct Outcome {
  PreparedRequest prepared;
  std::map<std::string, Values> taps;  ///< of the prompt alone
  std::vector<int32_t> greedy_ids;
};

Result<Outcome> run(Runner& runner, const GoldenRun& golden) {
  Outcome out;
  bool in_prompt = true;
  Engine& engine = *runner.engine;
  engine.model_runner().registry().set_tap([&](const std::string& name, const View& view) {
    if (!in_prompt) return;
    Values& values = out.taps[name];  // several pictures follow one another
    values.shape = view.shape;
    const int64_t n_rows = view.shape.rank() == 2 ? view.shape[0] : 1;
    const int64_t width = view.shape.n_elements() / n_rows;
    for (int64_t row = 0; row < n_rows; ++row) {
      const float* begin = view.f32() + row * view.strides[0];
      values.data.insert(values.data.end(), begin, begin + width);
    }
  });
  Request request = golden.request;
  request.sampling.max_tokens = static_cast<int64_t>(golden.greedy_ids.size());
  request.sampling.ignore_eos = true;
  TRIPTYCH_ASSIGN_OR_RETURN(
      PreparedRequest prepared,
      runner.prep->prepare(request, engine.model_runner().plan().context_tokens,
                           engine.model_runner().pool(), engine.model_runner().registry()));
  out.prepared.ids = prepared.ids;
  out.prepared.spans = prepared.spans;
  TRIPTYCH_RETURN_IF_ERROR(engine.submit(std::move(prepared)).status());
  while (!engine.idle()) {
    const std::vector<SequenceEvent> events = engine.step();
    if (events.empty()) continue;
    const TokenEvent* event = &events.front().token;
    if (event->finish == FinishReason::kError) return event->error;
    in_prompt = false;
    out.greedy_ids.push_back(event->token);
  }
  engine.model_runner().registry().set_tap(nullptr);
  return out;
}

/// max |ours - golden| <= tolerance * rms(golden)
void expect_close(const std::string& what, const Values& golden, const float* ours, size_t n_ours,
                  double tolerance) {
  ASSERT_EQ(n_ours, golden.data.size()) << what << " " << golden.shape.to_string();
  double square = 0;
  double worst = 0;
  for (size_t i = 0; i < n_ours; ++i) {
    square += static_cast<double>(golden.data[i]) * golden.data[i];
    const double difference = std::abs(static_cast<double>(ours[i]) - golden.data[i]);
    ASSERT_FALSE(std::isnan(difference)) << what << " at " << i;
    worst = std::max(worst, difference);
  }
  const double rms = std::sqrt(square / static_cast<double>(n_ours));
  EXPECT_LE(worst, tolerance * rms) << what << ": worst difference " << worst << ", rms " << rms;
}

void compare_taps(const Golden& golden, const GoldenRun& wanted, const Outcome& got, bool bf16) {
  for (const auto& [name, values] : wanted.taps) {
    // Logits at all positions are not something that the engine computes.
    if (name == "logits.all") continue;
    const auto found = got.taps.find(name);
    ASSERT_NE(found, got.taps.end()) << "no tap " << name;
    const std::vector<float>& ours = found->second.data;
    const std::string what = wanted.name + "/" + name;
    if (name == "decoder.norm") {
      // Only the rows whose logits are wanted are normed: the last one.
      const auto width = static_cast<size_t>(values.shape[values.shape.rank() - 1]);
      const Values last{Shape{1, static_cast<int64_t>(width)},
                        {values.data.end() - static_cast<int64_t>(width), values.data.end()}};
      expect_close(what, last, ours.data(), ours.size(), golden.tolerance(name, bf16));
    } else {
      expect_close(what, values, ours.data(), ours.size(), golden.tolerance(name, bf16));
    }
  }
}

void compare_greedy(const GoldenRun& wanted, const Outcome& got, double near_tie,
                    int64_t context_tokens) {
  // transformers goes on past the context where the rope type lets it; an answer here ends there.
  const size_t room = static_cast<size_t>(context_tokens) - wanted.prompt_ids.size();
  ASSERT_EQ(got.greedy_ids.size(), std::min(wanted.greedy_ids.size(), room)) << wanted.name;
  for (size_t i = 0; i < got.greedy_ids.size(); ++i) {
    if (wanted.greedy_margins[i] < near_tie) return;  // either token is right from here on
    ASSERT_EQ(got.greedy_ids[i], wanted.greedy_ids[i])
        << wanted.name << " token " << i << ", margin " << wanted.greedy_margins[i];
  }
}

class ModelParity : public testing::TestWithParam<Variant> {};

TEST_P(ModelParity, MatchesTransformers) {
  const Variant& variant = GetParam();
  const Result<Golden> golden = load_golden(variant.golden);
  ASSERT_TRUE(golden.is_ok()) << golden.status().message();
  const bool bf16 = variant.bf16_activations;
  for (const std::string& path : golden->checkpoints) {
    SCOPED_TRACE(path);
    Result<Runner> runner = open(path, variant, 512);
    ASSERT_TRUE(runner.is_ok()) << runner.status().message();
    for (const GoldenRun& wanted : golden->runs) {
      SCOPED_TRACE(wanted.name);
      Result<Outcome> got = run(*runner, wanted);
      if (wanted.beyond_max_positions) {
        // Such positions give transformers results that depend on how the prompt was cut; a context
        // never grows beyond max_position_embeddings here.
        EXPECT_EQ(got.status().code(), StatusCode::kOutOfRange);
        continue;
      }
      ASSERT_TRUE(got.is_ok()) << got.status().message();
      EXPECT_EQ(got->prepared.ids, wanted.prompt_ids);
      ASSERT_EQ(got->prepared.spans.size(), wanted.spans.size());
      for (size_t i = 0; i < wanted.spans.size(); ++i) {
        EXPECT_EQ(got->prepared.spans[i].position, wanted.spans[i].position);
        EXPECT_EQ(got->prepared.spans[i].length, wanted.spans[i].length);
      }
      compare_taps(*golden, wanted, *got, bf16);
      compare_greedy(wanted, *got, bf16 ? golden->near_tie_bf16 : golden->near_tie,
                     runner->engine->model_runner().plan().context_tokens);
    }
  }
}

/// Chunked equals whole, bit for bit: the logits of the last position and all greedy tokens.
TEST_P(ModelParity, ChunkedPrefillEqualsWhole) {
  const Variant& variant = GetParam();
  const Result<Golden> golden = load_golden(variant.golden);
  ASSERT_TRUE(golden.is_ok());
  Result<Runner> whole = open(golden->checkpoints[0], variant, 512);
  Result<Runner> chunked = open(golden->checkpoints[0], variant, 7);
  ASSERT_TRUE(whole.is_ok() && chunked.is_ok());
  for (const GoldenRun& wanted : golden->runs) {
    if (wanted.beyond_max_positions) continue;
    Result<Outcome> a = run(*whole, wanted);
    Result<Outcome> b = run(*chunked, wanted);
    ASSERT_TRUE(a.is_ok() && b.is_ok());
    EXPECT_EQ(a->taps.at("logits").data, b->taps.at("logits").data) << wanted.name;
    EXPECT_EQ(a->greedy_ids, b->greedy_ids) << wanted.name;
  }
}

std::vector<Variant> variants() {
  std::vector<Variant> out;
  for (const std::string& golden : golden_folders()) {
    for (CpuIsa isa : available_cpu_isas()) {
      out.push_back({golden, std::string(cpu_isa_name(isa)), false});
      if (isa >= CpuIsa::kAvx512Bf16) out.push_back({golden, std::string(cpu_isa_name(isa)), true});
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Goldens, ModelParity, testing::ValuesIn(variants()),
                         [](const testing::TestParamInfo<Variant>& tested) {
                           return tested.param.golden + "_" + tested.param.isa +
                                  (tested.param.bf16_activations ? "_bf16_activations" : "_f32");
                         });

}  // namespace
}  // namespace triptych::parity
