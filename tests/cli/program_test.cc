// The program as a user meets it: one clear line on stderr and an exit code by class for every kind
// of bad input, and the shipped model's answers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "run_program.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDemo = "models/demo";
constexpr const char* kPictures = "tests/parity/goldens/pictures";

/// Expects one line of error with these parts and this exit code.
void expect_error(const std::string& args, int code, const std::vector<std::string>& parts) {
  const Outcome got = run(args);
  EXPECT_EQ(got.code, code) << args << "\n" << got.out;
  for (const std::string& part : parts) EXPECT_THAT(got.out, HasSubstr(part)) << args;
  EXPECT_EQ(std::count(got.out.begin(), got.out.end(), '\n'), 1) << got.out;
  EXPECT_THAT(got.out, testing::StartsWith("triptych: "));
}

std::string temporary(const std::string& name) {
  const fs::path path = fs::path(testing::TempDir()) / "program_test" / name;
  fs::create_directories(path.parent_path());
  return path.string();
}

/// A copy of the tiny LLaVA checkpoint that a test may break.
std::string tiny_copy(const std::string& name) {
  const std::string folder = temporary(name);
  fs::remove_all(folder);
  fs::copy("tests/parity/goldens/llava_clip/checkpoint", folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    fs::permissions(entry, fs::perms::owner_read | fs::perms::owner_write);
  }
  return folder;
}

void replace_in_file(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = *read_file(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << path << " has no " << from;
  ASSERT_TRUE(write_file(path, text.replace(at, from.size(), to)).is_ok());
}

std::string chat(const std::string& model, const std::string& image) {
  return fmt::format("chat {} --image {} --max-tokens 4 \"What is this?\"", model, image);
}

TEST(Program, HelpTeachesAndUsageErrorsExitWithTwo) {
  const Outcome help = run("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* command : {"chat", "inspect", "eval", "bench", "perplexity", "doctor"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
  }
  EXPECT_EQ(run("chat --help").code, 0);
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("chatt").code, 2);
  EXPECT_EQ(run("chat --no-such-flag x").code, 2);
}

TEST(Program, MissingAndUnreadableFiles) {
  expect_error(chat("no/such/model", "x.png"), 3, {"x.png", "No such file"});
  expect_error("chat no/such/model hello", 3, {"no/such/model"});
  expect_error(chat(kDemo, "no/such.png"), 3, {"no/such.png", "No such file"});
  expect_error(chat(kDemo, "tests"), 2, {"tests", "directory"});
}

TEST(Program, PicturesThatAreNoPictures) {
  const std::string empty = temporary("empty.png");
  ASSERT_TRUE(write_file(empty, "").is_ok());
  expect_error(chat(kDemo, empty), 2, {empty, "empty"});
  const std::string text = temporary("text.png");
  ASSERT_TRUE(write_file(text, "this is not a picture at all, just text").is_ok());
  EXPECT_NE(run(chat(kDemo, text)).code, 0);
  const std::string heic = temporary("photo.jpg");
  ASSERT_TRUE(write_file(heic, std::string("\0\0\0\x18"
                                           "ftypheic\0\0\0\0heicmif1",
                                           24))
                  .is_ok());
  expect_error(chat(kDemo, heic), 5, {heic, "HEIC"});
}

TEST(Program, TruncatedAndCorruptPictures) {
  const std::string whole = *read_file(std::string(kPictures) + "/waves_37x53.png");
  const std::string cut = temporary("cut.png");
  ASSERT_TRUE(write_file(cut, std::string_view(whole).substr(0, whole.size() / 2)).is_ok());
  expect_error(chat(kDemo, cut), 4, {cut});
  std::string flipped = whole;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x5a);
  const std::string corrupt = temporary("corrupt.png");
  ASSERT_TRUE(write_file(corrupt, flipped).is_ok());
  expect_error(chat(kDemo, corrupt), 4, {corrupt});
}

TEST(Program, ABombIsRefusedByItsHeader) {
  // IHDR of a 30000 x 30000 picture in front of an empty IDAT.
  const unsigned char header[] = {0x89, 'P', 'N', 'G', 13,  10, 26,   10,   0, 0, 0,    13,
                                  'I',  'H', 'D', 'R', 0,   0,  0x75, 0x30, 0, 0, 0x75, 0x30,
                                  1,    0,   0,   0,   0,   0,  0,    0,    0, 0, 0,    0,
                                  0,    'I', 'D', 'A', 'T', 0,  0,    0,    0};
  const std::string path = temporary("bomb.png");
  ASSERT_TRUE(write_file(path, {reinterpret_cast<const char*>(header), sizeof(header)}).is_ok());
  expect_error(chat(kDemo, path), 6, {path, "30000"});
}

TEST(Program, ConfigsNameFileAndKey) {
  const std::string folder = tiny_copy("bad_config");
  replace_in_file(folder + "/config.json", "\"num_hidden_layers\": ", "\"num_hidden_layers\": -");
  expect_error("inspect " + folder, 2, {"config.json", "num_hidden_layers"});
  ASSERT_TRUE(write_file(folder + "/config.json", "{\"model_type\": \"llava\",").is_ok());
  expect_error("inspect " + folder, 4, {"config.json", "JSON"});
  ASSERT_TRUE(write_file(folder + "/config.json", "{\"model_type\": \"gpt_banana\"}").is_ok());
  expect_error("inspect " + folder, 5, {"gpt_banana", "llava", "mistral", "qwen2"});
}

TEST(Program, WeightsNameTensorExpectedAndFound) {
  const std::string folder = tiny_copy("bad_weights");
  const std::string file = folder + "/model.safetensors";
  const std::string good = *read_file(file);
  // A dropped tensor: its name changes by one letter.
  std::string renamed = good;
  const size_t at = renamed.find("self_attn.q_proj.weight");
  ASSERT_NE(at, std::string::npos);
  renamed[at + 10] = 'x';
  ASSERT_TRUE(write_file(file, renamed).is_ok());
  EXPECT_NE(run("inspect " + folder).code, 0);
  EXPECT_THAT(run("inspect " + folder).out, HasSubstr("q_proj.weight"));
  // A header that claims 100 GB.
  std::string hostile = good;
  const uint64_t claim = 100'000'000'000;
  std::memcpy(hostile.data(), &claim, sizeof(claim));
  ASSERT_TRUE(write_file(file, hostile).is_ok());
  const Outcome refused = run("inspect " + folder);
  EXPECT_TRUE(refused.code == 4 || refused.code == 6) << refused.out;
  EXPECT_THAT(refused.out, HasSubstr("model.safetensors"));
}

TEST(Program, APromptBeyondTheContextSaysHowLongAndHowMuchFits) {
  const std::string path = temporary("long.txt");
  std::ofstream file(path);
  for (int i = 0; i < 6000; ++i) file << "what color is it ";
  file.close();
  const Outcome got = run("chat models/demo", "", path);
  EXPECT_EQ(got.code, 6) << got.out;
  EXPECT_THAT(got.out, HasSubstr("2048"));
  EXPECT_THAT(got.out, HasSubstr("shorten it"));
}

TEST(Program, BadSamplingValuesNameTheField) {
  expect_error("chat models/demo --temperature nan hi", 2, {"temperature"});
  expect_error("chat models/demo --temperature inf hi", 2, {"temperature"});
  expect_error("chat models/demo --top-p 1.5 hi", 2, {"top_p"});
  expect_error("chat models/demo --top-k=-5 hi", 2, {"top_k"});
  expect_error("chat models/demo --min-p 2 hi", 2, {"min_p"});
  expect_error("chat models/demo --typical-p 0 hi", 2, {"typical_p"});
  expect_error("chat models/demo --presence-penalty 3 hi", 2, {"presence_penalty"});
  expect_error("chat models/demo --logit-bias 99999999=1 hi", 2, {"logit_bias", "99999999"});
  expect_error("chat models/demo --logit-bias=-1=1 hi", 2, {"logit_bias", "-1"});
  expect_error("chat models/demo --stop-id 99999999 hi", 2, {"stop_token_ids", "99999999"});
  expect_error("chat models/demo --logprobs 21 --json hi", 2, {"top_logprobs"});
  expect_error("chat models/demo --min-tokens 5 --max-tokens 4 hi", 2, {"min_tokens"});
  for (const char* off : {"--top-k=-1", "--top-k=0"}) {
    EXPECT_EQ(run(fmt::format("chat models/demo {} --max-tokens 2 hi", off)).code, 0);
  }
}

std::string chat_text(const std::string& flags) {
  const Outcome got = run("chat models/demo --json " + flags + " \"What color is it?\"");
  EXPECT_EQ(got.code, 0) << got.out;
  const Result<Json> json = parse_json(got.out);
  EXPECT_TRUE(json.is_ok()) << got.out;
  return json.is_ok() ? json->find("text")->string_value() : "";
}

TEST(Program, HelpOfChatTeachesSampling) {
  const Outcome help = run("chat --help");
  for (const char* flag :
       {"--top-k", "--top-p", "--min-p", "--typical-p", "--repetition-penalty",
        "--presence-penalty", "--frequency-penalty", "--logit-bias", "--seed", "--logprobs",
        "--min-tokens", "--stop", "--json-schema", "--regex", "--lark", "--choice yes,no"}) {
    EXPECT_THAT(help.out, HasSubstr(flag));
  }
}

TEST(Program, TheSameSeedGivesTheSameAnswer) {
  const std::string flags = "--temperature 5 --max-tokens 20 --ignore-eos --seed ";
  const std::string first = chat_text(flags + "7");
  EXPECT_EQ(chat_text(flags + "7"), first);
  EXPECT_NE(chat_text(flags + "8"), first);
  const std::string greedy = chat_text("--max-tokens 20 --temperature 0 --top-k 3 --seed 1");
  EXPECT_EQ(chat_text("--max-tokens 20"), greedy);
}

TEST(Program, TheAnswerHasTheFormAskedFor) {
  const std::string choice = chat_text("--choice banana,cherry");
  EXPECT_TRUE(choice == "banana" || choice == "cherry") << choice;
  EXPECT_THAT(chat_text("--temperature 3 --seed 2 --regex \"[0-9]{3}-[a-f]{2}\""),
              testing::MatchesRegex("[0-9][0-9][0-9]-[a-f][a-f]"));
  const std::string schema = temporary("schema.json");
  ASSERT_TRUE(write_file(schema, R"({"type": "object", "properties": {"n": {"type": "integer",
      "minimum": 0, "maximum": 9}, "colour": {"enum": ["red", "blue"]}},
      "required": ["n", "colour"], "additionalProperties": false})")
                  .is_ok());
  for (const char* seed : {"1", "2", "3"}) {
    const std::string text = chat_text(fmt::format(
        "--temperature 2 --top-k 50 --max-tokens 400 --seed {} --json-schema {}", seed, schema));
    const Result<Json> json = parse_json(text);
    ASSERT_TRUE(json.is_ok()) << text;
    EXPECT_TRUE(json->find("n")->is_int()) << text;
    EXPECT_TRUE(json->find("colour")->is_string()) << text;
  }
}

TEST(Program, ABadGrammarNamesItsSource) {
  expect_error("chat models/demo --regex \"(\" hi", 2, {"--regex", "grammar"});
  const std::string schema = temporary("bad_schema.json");
  ASSERT_TRUE(write_file(schema, "{\"type\": 3}").is_ok());
  expect_error("chat models/demo --json-schema " + schema + " hi", 2, {schema, "grammar"});
  expect_error("chat models/demo --json-schema no/such.json hi", 3, {"no/such.json"});
  expect_error("chat models/demo --regex a --choice b hi", 2, {"one of", "--choice"});
  expect_error("chat models/demo --regex a --ignore-eos hi", 2, {"ignore_eos"});
}

TEST(Program, LogprobsComeWithTheirMostLikelyTokens) {
  const Outcome got =
      run("chat models/demo --json --logprobs 3 --max-tokens 4 --ignore-eos \"What?\"");
  ASSERT_EQ(got.code, 0) << got.out;
  const Result<Json> json = parse_json(got.out);
  ASSERT_TRUE(json.is_ok()) << got.out;
  ASSERT_NE(json->find("logprobs"), nullptr) << got.out;
  const std::vector<Json>& tokens = json->find("logprobs")->elements();
  const std::vector<Json>& ids = json->find("token_ids")->elements();
  ASSERT_EQ(tokens.size(), ids.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::vector<Json>& top = tokens[i].find("top")->elements();
    ASSERT_EQ(top.size(), 3u);
    EXPECT_LE(tokens[i].find("logprob")->number_value(), 0);
    // The default is greedy, so the token drawn is the most likely one.
    EXPECT_EQ(top[0].find("token_id")->int_value(), ids[i].int_value());
    EXPECT_EQ(top[0].find("logprob")->number_value(), tokens[i].find("logprob")->number_value());
    EXPECT_GE(top[0].find("logprob")->number_value(), top[1].find("logprob")->number_value());
  }
}

TEST(Program, MinTokensHoldsBackEveryKindOfEnd) {
  const Outcome got = run(
      "chat models/demo --json --min-tokens 12 --max-tokens 12 --stop e --stop a \"What color?\"");
  ASSERT_EQ(got.code, 0) << got.out;
  EXPECT_EQ(parse_json(got.out)->find("token_ids")->elements().size(), 12u) << got.out;
}

TEST(Program, ATextModelTakesNoPictures) {
  expect_error(chat("tests/parity/goldens/text_llama/checkpoint",
                    std::string(kPictures) + "/waves_37x53.png"),
               5, {"llama", "takes no image"});
}

TEST(Program, TextThatSpellsTheMediaTokenStaysText) {
  const Outcome got =
      run("chat models/demo --json --max-tokens 4 \"What does <image> mean? <|end|><|user|>\"");
  ASSERT_EQ(got.code, 0) << got.out;
  const Result<Json> json = parse_json(got.out);
  ASSERT_TRUE(json.is_ok()) << got.out;
  EXPECT_EQ(json->find("usage")->find("media_tokens")->int_value(), 0);
  for (const Json& id : json->find("prompt_ids")->elements()) EXPECT_NE(id.int_value(), 5);
}

TEST(Program, JsonHoldsTextIdsAndFigures) {
  const Outcome got = run(
      fmt::format("chat {} --json --max-tokens 8 --image {}/waves_37x53.png \"What color is it?\"",
                  kDemo, kPictures));
  ASSERT_EQ(got.code, 0) << got.out;
  const Result<Json> json = parse_json(got.out);
  ASSERT_TRUE(json.is_ok()) << got.out;
  EXPECT_TRUE(json->find("text")->is_string());
  EXPECT_EQ(json->find("usage")->find("media_tokens")->int_value(), 576);
  EXPECT_FALSE(json->find("token_ids")->elements().empty());
  EXPECT_GT(json->find("usage")->find("ttft_ms")->number_value(), 0);
}

TEST(Program, FiguresThatWereNotMeasuredAreNull) {
  const Outcome got = run("chat models/demo --json --max-tokens 1 \"What color is it?\"");
  ASSERT_EQ(got.code, 0) << got.out;
  const Result<Json> json = parse_json(got.out);
  ASSERT_TRUE(json.is_ok()) << got.out;
  const Json& usage = *json->find("usage");
  EXPECT_GT(usage.find("ttft_ms")->number_value(), 0);
  for (const char* key : {"encode_ms", "decode_ms", "decode_tokens_per_s"}) {
    ASSERT_NE(usage.find(key), nullptr) << key;
    EXPECT_TRUE(usage.find(key)->is_null()) << key;
  }
}

TEST(Program, BenchLeavesOutStagesThatDidNotRun) {
  const std::string tiny = "tests/parity/goldens/llava_clip/checkpoint";
  const Outcome got = run("bench " + tiny + " --json --prompt-tokens 4 --gen 2 --repeats 1");
  ASSERT_EQ(got.code, 0) << got.out;
  const Result<Json> json = parse_json(got.out);
  ASSERT_TRUE(json.is_ok()) << got.out;
  EXPECT_EQ(json->find("vision_ms"), nullptr);
  EXPECT_EQ(json->find("vision_fraction"), nullptr);
  EXPECT_GT(json->find("prefill_ms")->number_value(), 0);
  EXPECT_GT(json->find("decode_ms_per_token")->number_value(), 0);
}

TEST(Program, BenchRefusesAnAnswerThatDoesNotFit) {
  expect_error("bench models/demo --prompt-tokens 2047 --gen 1", 6, {"2048", "--gen"});
}

TEST(Program, TraceHoldsEveryBoundaryOfAPicturesWay) {
  const std::string trace = temporary("trace.jsonl");
  const Outcome got = run(
      fmt::format("chat {} --max-tokens 2 --trace-tensors {} --image {}/waves_37x53.png \"What?\"",
                  kDemo, trace, kPictures));
  ASSERT_EQ(got.code, 0) << got.out;
  const std::string text = *read_file(trace);
  for (const char* name : {"pixel_values", "vision_tower.out", "projector.out", "logits"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("\"name\":\"{}\"", name)));
  }
  EXPECT_THAT(text, HasSubstr("37x53 resized to 384x384, 576 tokens"));
}

TEST(Program, DoctorAndInspectSpeakJson) {
  for (const std::string& args :
       {std::string("doctor --json"),
        std::string("inspect models/demo --json --image ") + kPictures + "/waves_37x53.png"}) {
    const Outcome got = run(args);
    EXPECT_EQ(got.code, 0) << got.out;
    EXPECT_TRUE(parse_json(got.out).is_ok()) << got.out;
  }
}

TEST(Program, AnUnknownCpuLevelIsAnError) {
  const Outcome got = run("doctor", "TRIPTYCH_CPU_ISA=sse9");
  EXPECT_EQ(got.code, 2);
  EXPECT_THAT(got.out, HasSubstr("sse9"));
}

TEST(Program, RunAnswersAFileAndGoesOnBehindABadLine) {
  const std::string folder = testing::TempDir();
  const std::string in = folder + "requests.jsonl";
  const std::string out = folder + "results.jsonl";
  const std::string picture = std::filesystem::absolute("tests/eval/demo/images/042.jpg");
  ASSERT_TRUE(
      write_file(
          in,
          "{\"id\": \"a\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\", "
          "\"path\": \"" +
              picture +
              "\"}, {\"type\": \"text\", \"text\": \"Describe the picture.\"}]}]}\n"
              "\n"
              "{\"id\": 2, \"messages\": [], \"temprature\": 1}\n"
              "{\"id\": 3, \"prompt\": \"abc\", \"n\": 2, \"max_tokens\": 3, \"ignore_eos\": "
              "true}\n")
          .is_ok());
  const Outcome got = run("run models/demo --jsonl " + in + " --out " + out);
  EXPECT_EQ(got.code, 2) << "the class of the line that failed";
  EXPECT_THAT(got.out, HasSubstr("1 of 3 requests failed"));
  const Result<std::string> results = read_file(out);
  ASSERT_TRUE(results.is_ok());
  EXPECT_THAT(*results, HasSubstr("a blue triangle"));
  EXPECT_THAT(*results, HasSubstr("requests.jsonl:3: temprature: unknown field"));
  EXPECT_THAT(*results, HasSubstr("\"completion_tokens\":6"));
  EXPECT_EQ(std::count(results->begin(), results->end(), '\n'), 3);
}

TEST(Program, RunWaitsForMemoryInsteadOfFailingRequests) {
  const std::string in = testing::TempDir() + "many_pictures.jsonl";
  const std::string out = testing::TempDir() + "many_pictures_results.jsonl";
  std::string requests;
  int64_t n = 0;
  for (const auto& picture : std::filesystem::directory_iterator("tests/eval/demo/images")) {
    if (++n > 16) break;
    requests += fmt::format(
        R"({{"messages": [{{"role": "user", "content": [{{"type": "image", "path": "{}"}},)"
        R"({{"type": "text", "text": "What is it?"}}]}}], "max_tokens": 2}})",
        std::filesystem::absolute(picture.path()).string());
    requests += '\n';
  }
  ASSERT_TRUE(write_file(in, requests).is_ok());
  const Outcome got = run("run models/demo --memory 64MiB --jsonl " + in + " --out " + out);
  EXPECT_EQ(got.code, 0) << got.out;
  EXPECT_THAT(got.out, HasSubstr("at most 67.1 MB"));
  const Result<std::string> results = read_file(out);
  ASSERT_TRUE(results.is_ok());
  EXPECT_EQ(std::count(results->begin(), results->end(), '\n'), 16);
  EXPECT_THAT(*results, Not(HasSubstr("error")));
}

TEST(Program, RunSaysInWhichStageTheTimeOfARequestWent) {
  const std::string folder = testing::TempDir();
  const std::string in = folder + "timeline_requests.jsonl";
  const std::string out = folder + "timeline_results.jsonl";
  const std::string picture = std::filesystem::absolute("tests/eval/demo/images/042.jpg");
  const std::string request =
      "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"path\": \"" +
      picture + "\"}, {\"type\": \"text\", \"text\": \"What is it?\"}]}]}\n";
  ASSERT_TRUE(write_file(in, request).is_ok());
  ASSERT_EQ(run("run models/demo --jsonl " + in + " --out " + out).code, 0);
  const Result<Json> result = parse_json_file(out);
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  const Json* timeline = result->find("timeline");
  ASSERT_NE(timeline, nullptr);
  double sum = 0;
  for (const char* stage :
       {"fetch", "queue", "process", "media_decode", "wait", "encode", "prefill", "decode"}) {
    const Json* ms = timeline->find(std::string(stage) + "_ms");
    ASSERT_NE(ms, nullptr) << stage;
    EXPECT_GE(ms->number_value(), 0) << stage;
    sum += ms->number_value();
  }
  EXPECT_NEAR(sum, timeline->find("total_ms")->number_value(), 1e-6 * sum);
  EXPECT_GT(timeline->find("encode_ms")->number_value(), 0);
  EXPECT_EQ(timeline->find("media_tokens")->int_value(), 576);
  EXPECT_EQ(timeline->find("cache")->string_value(), "none");
}

std::string text_of(const Json& event, std::string_view key) {
  const Json* value = event.find(key);
  return value == nullptr ? "" : value->string_value();
}

/// Reads a trace file: it is JSON, each async span has its end, and no track goes back in time.
/// Returns the names of all events, with those of threads.
std::set<std::string> checked_trace(const std::string& path) {
  std::set<std::string> names;
  const Result<Json> json = parse_json_file(path);
  EXPECT_TRUE(json.is_ok()) << json.status().message();
  if (!json.is_ok()) return names;
  std::map<std::string, double> last;
  std::map<std::string, std::vector<std::string>> open;
  for (const Json& event : json->elements()) {
    const std::string phase = text_of(event, "ph");
    const std::string name = text_of(event, "name");
    if (phase == "M") {
      names.insert(text_of(*event.find("args"), "name"));
      continue;
    }
    names.insert(name);
    const std::string id = text_of(event, "id");
    std::string track = "counter " + name;
    if (phase == "X") track = fmt::format("thread {}", event.find("tid")->int_value());
    if (!id.empty()) track = "request " + id;
    const double ts = event.find("ts")->number_value();
    EXPECT_GE(ts, last.try_emplace(track, 0).first->second) << track;
    last[track] = ts;
    if (phase == "b") open[id].push_back(name);
    if (phase != "e") continue;
    if (open[id].empty()) {
      ADD_FAILURE() << name << " of " << id << " ends and never began";
      continue;
    }
    EXPECT_EQ(open[id].back(), name);
    open[id].pop_back();
  }
  for (const auto& [id, spans] : open) EXPECT_TRUE(spans.empty()) << id << ": " << spans.back();
  return names;
}

TEST(Program, TraceShowsRequestsStepsAndThreads) {
  const std::string in = temporary("trace_requests.jsonl");
  const std::string out = temporary("trace_run.json");
  const std::string picture = std::filesystem::absolute("tests/eval/demo/images/042.jpg");
  ASSERT_TRUE(write_file(in,
                         "{\"prompt\": \"abc\", \"n\": 2, \"max_tokens\": 3}\n"
                         "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
                         "\"image\", \"path\": \"" +
                             picture + "\"}]}], \"max_tokens\": 3}\n")
                  .is_ok());
  ASSERT_EQ(run("run models/demo --jsonl " + in + " --out /dev/null --trace " + out).code, 0);
  EXPECT_THAT(
      checked_trace(out),
      testing::IsSupersetOf({"engine", "prepare text", "prepare media 0", "request 1", "request 2",
                             "queue", "media_decode", "encode", "prefill", "decode", "step", "plan",
                             "forward", "KV pages in use", "batch size"}));
}

TEST(Program, TraceOfAChatShowsItsStages) {
  const std::string out = temporary("trace_chat.json");
  const Outcome got =
      run(fmt::format("chat {} --max-tokens 2 --trace {} --image {}/waves_37x53.png \"What?\"",
                      kDemo, out, kPictures));
  ASSERT_EQ(got.code, 0) << got.out;
  EXPECT_THAT(checked_trace(out),
              testing::IsSupersetOf({"request 1", "process", "media_decode", "encode", "prefill",
                                     "decode", "step", "KV pages in use"}));
}

TEST(Program, ATraceThatCannotBeWrittenIsNamed) {
  expect_error("chat models/demo --trace /nowhere/trace.json \"What?\"", 2,
               {"/nowhere/trace.json"});
}

}  // namespace
}  // namespace triptych
