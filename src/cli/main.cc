// The command line: CLI11 turns arguments into each subcommand's options and nothing else.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <sstream>

#include "cli/bench.h"
#include "cli/chat.h"
#include "cli/doctor.h"
#include "cli/eval.h"
#include "cli/inspect.h"
#include "cli/perplexity.h"
#include "cli/run_jsonl.h"
#include "cli/serve.h"
#include "cli/terminal.h"

namespace {

using namespace triptych;
using namespace triptych::cli;

struct Options {
  ChatOptions chat;
  InspectOptions inspect;
  EvalOptions eval;
  BenchOptions bench;
  PerplexityOptions perplexity;
  RunOptions run;
  ServeOptions serve;
  bool print_config = false;
  std::string key_name;
  bool doctor_measure = false;
  bool doctor_json = false;
};

constexpr const char* kModelHelp = "folder of a Hugging Face checkpoint, or a .gguf file";

void add_session_flags(CLI::App& app, SessionOptions& s) {
  app.add_option("--context", s.context_tokens, "tokens a sequence may have (default: the model's)")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--memory", s.memory_cap_bytes,
         "most memory to take, like 900MiB or 4G: weights, KV cache, caches of media, requests")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber);
  app.add_option("--chat-template", s.chat_template_file,
                 "Jinja file to use instead of the checkpoint's template");
  app.add_option("--trace-tensors", s.trace_tensors_file,
                 "write every tensor at a stage boundary to this file, as JSON lines");
}

void add_session(CLI::App& app, SessionOptions& s) {
  app.add_option("MODEL", s.model, kModelHelp)->required();
  add_session_flags(app, s);
}

void add_trace(CLI::App& app, SessionOptions& s) {
  app.add_option("--trace", s.trace_file,
                 "write what requests, steps and threads did to this file, as JSON that "
                 "ui.perfetto.dev opens");
}

void add_sampling(CLI::App& app, SamplingFlags& s) {
  const std::string group = "Sampling (defaults: the checkpoint's generation_config.json)";
  app.add_option("--temperature", s.temperature,
                 "0 takes the most likely token, 1 draws as the model believes, more is wilder")
      ->group(group);
  app.add_option("--top-k", s.top_k, "draw among the k most likely; 0 is off")->group(group);
  app.add_option("--top-p", s.top_p, "draw among the fewest that hold this share; 1 is off")
      ->group(group);
  app.add_option("--min-p", s.min_p, "drop tokens below this share of the most likely one's")
      ->group(group);
  app.add_option("--typical-p", s.typical_p,
                 "draw among the least surprising that hold this share; 1 is off")
      ->group(group);
  app.add_option("--repetition-penalty", s.repetition_penalty,
                 "above 1 avoids tokens of question and answer; 1 is off")
      ->group(group);
  app.add_option("--presence-penalty", s.presence_penalty,
                 "-2 to 2: taken from the logit of a token once it is in the answer")
      ->group(group);
  app.add_option("--frequency-penalty", s.frequency_penalty,
                 "-2 to 2: taken from the logit for each time it is in the answer")
      ->group(group);
  app.add_option("--logit-bias", s.logit_bias,
                 "ID=BIAS adds -100 to 100 to a token's logit; may be repeated")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--seed", s.seed, "same seed, same answer (with a temperature above 0)")
      ->group(group);
  app.add_option(
         "--logprobs", s.logprobs,
         "with --json: each token's log-probability and those of the N most likely (0 to 20)")
      ->group(group);
}

void add_answer_ends(CLI::App& app, SamplingFlags& s) {
  const std::string group = "Where the answer ends";
  app.add_option("--max-tokens", s.max_tokens, "longest answer (default: what the context holds)")
      ->group(group);
  app.add_option("--min-tokens", s.min_tokens, "no end of the answer before as many tokens")
      ->group(group);
  app.add_option("--stop", s.stop, "end the answer before this text; may be repeated")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--stop-id", s.stop_token_ids, "end the answer before this token; may be repeated")
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("--ignore-eos", s.ignore_eos, "go on after the end token")->group(group);
}

void add_grammar(CLI::App& app, SamplingFlags& s) {
  const std::string group = "Form of the answer (one of these)";
  app.add_option("--json-schema", s.json_schema_file, "JSON that this file's schema allows")
      ->group(group);
  app.add_option("--regex", s.regex, "text that this regular expression matches as a whole")
      ->group(group);
  app.add_option("--lark", s.lark_file, "text of this file's Lark grammar")->group(group);
  app.add_option("--choice", s.choices, "one of these texts, as in --choice yes,no")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
}

void add_chat(CLI::App& app, ChatOptions& o) {
  add_session(app, o.session);
  add_trace(app, o.session);
  app.add_option("PROMPT", o.prompt,
                 "question; without one and at a terminal a conversation starts");
  app.add_option("-i,--image", o.images, "picture to ask about; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--system", o.system, "system message");
  app.add_flag("--json", o.json, "print the answer with ids and figures as one JSON object");
  app.add_flag("--stats", o.stats, "print a line of figures behind the answer");
  app.add_flag("--raw", o.raw, "take the prompt as it is, without a chat template");
  add_sampling(app, o.sampling);
  add_answer_ends(app, o.sampling);
  add_grammar(app, o.sampling);
  app.footer(
      "Examples:\n"
      "  triptych chat models/demo --image photo.jpg \"What color is the square?\"\n"
      "  triptych chat models/demo                     # a conversation; /image FILE adds a "
      "picture\n"
      "  triptych chat models/demo --image photo.jpg --choice yes,no \"Is there a circle?\"\n"
      "  triptych chat models/demo --temperature 0.8 --top-p 0.9 --seed 7 \"Say something.\"\n"
      "  cat letter.txt | triptych chat model.gguf \"Summarise this.\"");
}

void add_listen(CLI::App& app, http::ListenOptions& o) {
  app.add_option("--host", o.host,
                 "address to listen at; others than 127.0.0.1 and ::1 need --api-keys")
      ->capture_default_str();
  app.add_option("--port", o.port, "port to listen at; 0 takes a free one")->capture_default_str();
  app.add_option("--unix-socket", o.unix_socket,
                 "listen at a unix socket of this path in place of host and port");
  CLI::Option* certificate = app.add_option("--tls-cert", o.tls.certificate,
                                            "PEM file of the certificate (chain): speak TLS");
  CLI::Option* key = app.add_option("--tls-key", o.tls.private_key, "PEM file of its private key");
  certificate->needs(key);
  key->needs(certificate);
  app.add_option("--tls-client-ca", o.tls.client_ca,
                 "PEM file of an authority: clients must show a certificate of it")
      ->needs(certificate);
}

/// Each flag can be given by a variable as well: --max-body by TRIPTYCH_SERVE_MAX_BODY.
void name_variables(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
    std::string name = "TRIPTYCH_SERVE_" + option->get_lnames().front();
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    option->envname(name);
  }
}

void add_serve(CLI::App& app, ServeOptions& o, bool& print_config) {
  app.add_option("MODEL", o.models, std::string(kModelHelp) + "; several may be given")->required();
  add_session_flags(app, o.session);
  add_trace(app, o.session);
  app.add_option("--alias", o.aliases,
                 "further name of the (first) model, or NAME=MODEL; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--api-keys", o.key_file,
                 "file of API keys, a name and a hash a line (`triptych key NAME` makes one); read "
                 "again on SIGHUP");
  add_listen(app, o.listen);
  app.add_option("--max-sequences", o.session.max_sequences, "answers in work at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--max-requests", o.max_requests,
                 "requests that wait or are in work at once; more are told to come later")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-body", o.limits.body_bytes, "longest request, like 32MiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--audit-log", o.audit_file,
                 "append a line of JSON for each request to this file: who, what and how much, "
                 "nothing of what was said; opened anew on SIGHUP");
  app.add_option("--fetch-from", o.sources.hosts,
                 "host whose http and https addresses requests may name, like example.org or "
                 "*.example.org; may be repeated (default: none)")
      ->allow_extra_args(false);
  app.add_option("--media-root", o.sources.folders,
                 "folder whose files requests may name as file:///...; may be repeated (default: "
                 "none)")
      ->allow_extra_args(false);
  app.add_option("--max-fetch", o.sources.max_bytes,
                 "most that is fetched for a request, like 32MiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--playground",
         [&o](const std::string& word) {
           o.playground = word == "on"     ? Playground::kOn
                          : word == "open" ? Playground::kOpen
                                           : Playground::kOff;
         },
         "the page at /: on, open (with --api-keys the page itself needs no key) or off")
      ->check(CLI::IsMember({"on", "open", "off"}))
      ->default_str("on");
  app.add_option("--drain", o.drain_s, "seconds for answers in work when told to end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--no-sandbox", o.no_sandbox,
               "decode pictures in the server's own process: for those of trusted senders alone");
  name_variables(app);
  app.add_flag("--print-config", print_config,
               "print what the flags, the file and the variables come to, as a file for --config")
      ->configurable(false);
  app.fallthrough();  // --config belongs to the program
  app.footer(
      "A flag wins over the file of --config, and that over TRIPTYCH_SERVE_PORT and its like.\n"
      "Example:\n"
      "  triptych serve models/demo --port 8000\n"
      "  curl http://127.0.0.1:8000/v1/chat/completions -d '{\"model\": \"demo\", \"messages\": "
      "[{\"role\": \"user\", \"content\": \"Hello\"}]}'");
}

void add_commands(CLI::App& app, Options& o) {
  CLI::App* chat = app.add_subcommand("chat", "ask a model about pictures and text");
  add_chat(*chat, o.chat);

  CLI::App* inspect =
      app.add_subcommand("inspect", "show what a checkpoint is, costs and takes in memory");
  add_session(*inspect, o.inspect.session);
  inspect->add_option("-i,--image", o.inspect.images, "show what this picture costs")
      ->allow_extra_args(false);
  inspect->add_flag("--json", o.inspect.json, "print JSON");

  CLI::App* eval = app.add_subcommand("eval", "answer a question set and report accuracy by task");
  add_session(*eval, o.eval.session);
  eval->add_option("--set", o.eval.set, "folder with questions.jsonl and pictures")->required();
  eval->add_option("--limit", o.eval.limit, "ask about this many, spread over the set");
  eval->add_flag("--blind", o.eval.blind, "replace each picture by its mean colour");
  eval->add_flag("--json", o.eval.json, "print JSON with every answer");

  CLI::App* bench = app.add_subcommand("bench", "time the stages of an answer on this machine");
  add_session(*bench, o.bench.session);
  bench->add_option("-i,--image", o.bench.image, "time the vision tower with this picture");
  bench
      ->add_option("--prompt-tokens", o.bench.prompt_tokens,
                   "rows of the prefill, picture included")
      ->capture_default_str();
  bench->add_option("--gen", o.bench.gen, "tokens to decode")->capture_default_str();
  bench->add_option("--repeats", o.bench.repeats, "runs to take the median of")
      ->capture_default_str();
  bench->add_flag("--json", o.bench.json, "print JSON");

  CLI::App* perplexity =
      app.add_subcommand("perplexity", "measure how well a model predicts a text file");
  add_session(*perplexity, o.perplexity.session);
  perplexity->add_option("FILE", o.perplexity.file, "text file")->required();
  perplexity->add_option("--window", o.perplexity.window, "tokens a window")->capture_default_str();
  perplexity->add_flag("--json", o.perplexity.json, "print JSON");

  CLI::App* run = app.add_subcommand("run", "answer a file of requests, many at once");
  add_session(*run, o.run.session);
  add_trace(*run, o.run.session);
  run->add_option("--jsonl", o.run.jsonl, "file of requests, one JSON object a line")->required();
  run->add_option("-o,--out", o.run.out, "file for the results (default: stdout)");
  run->add_option("--concurrency", o.run.concurrency, "requests in work at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  run->footer(
      "A request: {\"id\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
      "\"image\", \"path\": \"a.png\"},\n{\"type\": \"text\", \"text\": \"What is it?\"}]}], "
      "\"max_tokens\": 64, \"temperature\": 0, \"class\": \"batch\"}\n"
      "Pictures are files beside the request file. Each result is a line: id, choices, usage (or "
      "error) and timeline,\nwhich says in which stage the request's time went.");

  add_serve(*app.add_subcommand("serve", "answer over HTTP, as OpenAI's API does"), o.serve,
            o.print_config);
  app.set_config("--config", "", "TOML file with a section for a command, as `[serve]`")
      ->check(CLI::ExistingFile);
  app.allow_config_extras(false);

  CLI::App* key = app.add_subcommand("key", "make an API key for serve");
  key->add_option("NAME", o.key_name, "what the key is called in the key file and the log")
      ->required();

  CLI::App* doctor =
      app.add_subcommand("doctor", "show what this machine offers and what would be faster");
  doctor->add_flag("--measure", o.doctor_measure, "measure products and memory reads too");
  doctor->add_flag("--json", o.doctor_json, "print JSON");
}

/// A command's section of a file for --config; what has no value stands there as a comment.
void print_section(const CLI::App& command) {
  fmt::print("[{}]\n", command.get_name());
  std::istringstream lines(command.config_to_str(true, true));
  for (std::string line; std::getline(lines, line);) {
    fmt::print("{}{}\n", line.ends_with("=\"\"") ? "# " : "", line);
  }
}

Status run(const CLI::App& app, const Options& o) {
  if (app.got_subcommand("chat")) return run_chat(o.chat);
  if (app.got_subcommand("inspect")) return run_inspect(o.inspect);
  if (app.got_subcommand("eval")) return run_eval(o.eval);
  if (app.got_subcommand("bench")) return run_bench(o.bench);
  if (app.got_subcommand("run")) return run_jsonl(o.run);
  if (app.got_subcommand("serve")) {
    if (!o.print_config) return run_serve(o.serve);
    print_section(*app.get_subcommand("serve"));
    return Status::ok();
  }
  if (app.got_subcommand("key")) return run_key(o.key_name);
  if (app.got_subcommand("perplexity")) return run_perplexity(o.perplexity);
  return run_doctor(o.doctor_measure, o.doctor_json);
}

int run_program(int argc, char** argv) {
  CLI::App app("Triptych: an inference server for models that take pictures and text", "triptych");
  app.set_version_flag("--version", TRIPTYCH_VERSION);
  app.require_subcommand(1);
  app.footer(
      "`triptych COMMAND --help` shows a command's options. Exit codes: 0 fine, 2 usage, "
      "3 file missing, 4 corrupt data, 5 unsupported, 6 over a limit, 7 not possible now, "
      "70 a fault of ours.");
  Options options;
  options.serve.version = TRIPTYCH_VERSION;
  add_commands(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ConfigError& e) {
    fmt::print(stderr, "triptych: the file of --config: {}\n", e.what());
    return exit_code(StatusCode::kInvalidArgument);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : exit_code(StatusCode::kInvalidArgument);
  }
  const Status status = run(app, options);
  if (status.is_ok()) return 0;
  const Colors c = Colors::for_fd(2);
  fmt::print(stderr, "{}triptych:{} {}\n", c.red, c.reset, status.message());
  return exit_code(status.code());
}

}  // namespace

// What reaches the catch is a fault of ours or a machine without memory; either gets its one line.
int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (...) {
    const Status status = status_of_exception("running");
    std::fprintf(stderr, "triptych: %s\n", status.message().c_str());
    return exit_code(status.code());
  }
}
