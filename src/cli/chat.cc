#include "cli/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cli/terminal.h"

namespace triptych::cli {
namespace {

// Set by Ctrl-C: the answer stops, the program goes on. Reset before each answer.
std::atomic<bool> interrupted{false};

void on_interrupt(int) { interrupted.store(true); }

/// Ctrl-C stops an answer as long as one of these lives.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted.store(false);
    struct sigaction action {};
    action.sa_handler = on_interrupt;  // without SA_RESTART: a read at the prompt returns
    ::sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() { ::sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ {};
};

Json usage_json(const Usage& u) {
  Json out = Json::object();
  out.set("prompt_tokens", Json::integer(u.prompt_tokens));
  out.set("media_tokens", Json::integer(u.media_tokens));
  out.set("completion_tokens", Json::integer(u.completion_tokens));
  out.set("prep_ms", Json::number(u.prep_ms));
  out.set("encode_ms", u.media_tokens > 0 ? Json::number(u.encode_ms) : Json());
  out.set("prefill_ms", Json::number(u.prefill_ms));
  out.set("ttft_ms", Json::number_or_null(u.ttft_ms()));
  out.set("decode_ms", u.decode_steps() > 0 ? Json::number(u.decode_ms) : Json());
  out.set("decode_tokens_per_s", Json::number_or_null(u.decode_tokens_per_s()));
  out.set("peak_memory_bytes", Json::integer(static_cast<int64_t>(peak_resident_bytes())));
  return out;
}

Json ids_json(const std::vector<int32_t>& ids) {
  Json out = Json::array();
  for (int32_t id : ids) out.append(Json::integer(id));
  return out;
}

Json logprobs_json(const std::vector<TokenLogprobs>& tokens) {
  Json out = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json top = Json::array();
    for (const TokenLogprob& one : token.top) {
      top.append(Json::object(
          {{"token_id", Json::integer(one.token)}, {"logprob", Json::number(one.logprob)}}));
    }
    out.append(Json::object({{"logprob", Json::number(token.logprob)}, {"top", std::move(top)}}));
  }
  return out;
}

void print_json(const Answer& answer) {
  Json out = Json::object();
  out.set("text", Json::string(answer.text));
  out.set("token_ids", ids_json(answer.token_ids));
  if (!answer.logprobs.empty()) out.set("logprobs", logprobs_json(answer.logprobs));
  out.set("prompt_ids", ids_json(answer.prompt_ids));
  out.set("finish_reason", Json::string(std::string(finish_reason_name(answer.finish))));
  out.set("usage", usage_json(answer.usage));
  fmt::print("{}\n", out.dump());
}

/// One question and its answer on stdout.
Result<Answer> ask(Session& session, const Request& request, bool stream) {
  const InterruptGuard guard;
  Result<Answer> answer = session.answer(request, [&](std::string_view piece) {
    if (stream && !piece.empty()) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    }
    return !interrupted.load();
  });
  if (stream && answer.is_ok()) fmt::print("\n");
  return answer;
}

/// A conversation at a terminal.
class Repl {
 public:
  Repl(Session& session, const ChatOptions& options, Request request)
      : session_(session), options_(options), request_(std::move(request)) {
    reset();
    for (size_t i = 0; i < request_.media.size(); ++i) pending_.push_back(i);
  }

  Status run() {
    const Colors c = Colors::for_fd(1);
    fmt::print("{}{}: /help lists commands, Ctrl-D ends.{}\n", c.dim, options_.session.model,
               c.reset);
    std::string line;
    for (;;) {
      fmt::print("{}> {}", c.bold, c.reset);
      std::fflush(stdout);
      const InterruptGuard guard;  // Ctrl-C at the prompt clears the line
      if (!std::getline(std::cin, line)) {
        if (!interrupted.load()) break;
        std::cin.clear();
        ::clearerr(stdin);
        fmt::print("\n");
        continue;
      }
      if (line.empty()) continue;
      if (line[0] == '/') {
        if (!command(line)) break;
      } else {
        turn(line);
      }
    }
    return Status::ok();
  }

 private:
  void reset() {
    request_.messages.clear();
    if (!options_.system.empty()) {
      request_.messages.push_back({"system", {{options_.system, std::nullopt}}});
    }
    pending_.clear();
  }

  /// False ends the conversation.
  bool command(const std::string& line) {
    if (line == "/quit" || line == "/exit") return false;
    if (line == "/reset") {
      reset();
      request_.media.clear();
      fmt::print("The conversation starts anew.\n");
    } else if (line == "/stats") {
      fmt::print("{}\n", last_ ? figures_line(*last_) : "No answer yet.");
    } else if (line.rfind("/image ", 0) == 0) {
      add_image(line.substr(7));
    } else if (line == "/help") {
      fmt::print(
          "/image FILE  adds a picture to the next question\n"
          "/reset       forgets the conversation and its pictures\n"
          "/stats       figures of the last answer\n"
          "/quit        ends (so does Ctrl-D); Ctrl-C stops an answer\n");
    } else {
      fmt::print("Unknown command {}; /help lists them.\n", line);
    }
    return true;
  }

  void add_image(const std::string& path) {
    Result<MediaItem> item = load_media(path);
    Result<ImageCost> cost = item.is_ok() ? session_.prep().cost(*item) : item.status();
    if (!cost.is_ok()) {
      fmt::print("{}\n", cost.status().message());
      return;
    }
    pending_.push_back(request_.media.size());
    request_.media.push_back(std::move(*item));
    fmt::print("{}: {}x{}, {} tokens\n", path, cost->header.width, cost->header.height,
               cost->n_tokens);
  }

  void turn(const std::string& text) {
    request_.messages.push_back(user_message(pending_, text));
    const Result<Answer> answer = ask(session_, request_, true);
    if (!answer.is_ok()) {
      // The question is taken back, so that a shorter one can be tried.
      fmt::print("{}\n", answer.status().message());
      request_.messages.pop_back();
      return;
    }
    pending_.clear();
    request_.messages.push_back({"assistant", {{answer->text, std::nullopt}}});
    last_ = answer->usage;
  }

  Session& session_;
  const ChatOptions& options_;
  Request request_;
  std::vector<size_t> pending_;  ///< pictures of the next question
  std::optional<Usage> last_;
};

/// The words of the command line, behind whatever came through a pipe.
std::string gather_prompt(const ChatOptions& options) {
  std::string prompt;
  for (const std::string& word : options.prompt) prompt += (prompt.empty() ? "" : " ") + word;
  if (is_terminal(0)) return prompt;
  std::string piped(std::istreambuf_iterator<char>(std::cin), {});
  while (!piped.empty() && (piped.back() == '\n' || piped.back() == '\r')) piped.pop_back();
  if (piped.empty()) return prompt;
  return prompt.empty() ? piped : prompt + "\n" + piped;
}

}  // namespace

std::string figures_line(const Usage& u) {
  std::string out = fmt::format("{} image tokens of {}, ", u.media_tokens, u.prompt_tokens);
  if (const auto ttft = u.ttft_ms()) out += fmt::format("TTFT {:.0f} ms, ", *ttft);
  if (const auto rate = u.decode_tokens_per_s()) out += fmt::format("{:.0f} tokens/s, ", *rate);
  return out + "peak memory " + human_bytes(static_cast<double>(peak_resident_bytes()));
}

Status run_chat(const ChatOptions& options) {
  const std::string prompt = gather_prompt(options);
  const bool one_shot = !prompt.empty() || !is_terminal(0) || options.json;
  if (one_shot && prompt.empty()) {
    return invalid_argument("there is no prompt: give it as an argument or through a pipe");
  }
  Request request;
  for (const std::string& path : options.images) {
    TRIPTYCH_ASSIGN_OR_RETURN(MediaItem item, load_media(path));
    request.media.push_back(std::move(item));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.session));
  TRIPTYCH_ASSIGN_OR_RETURN(
      request.sampling, options.sampling.apply(default_sampling(session->runner().model().spec)));
  if (!one_shot) return Repl(*session, options, std::move(request)).run();
  if (options.raw) {
    if (!request.media.empty()) return invalid_argument("--raw takes no pictures");
    request.raw_prompt = prompt;
  } else {
    if (!options.system.empty()) {
      request.messages.push_back({"system", {{options.system, std::nullopt}}});
    }
    std::vector<size_t> media;
    for (size_t i = 0; i < request.media.size(); ++i) media.push_back(i);
    request.messages.push_back(user_message(media, prompt));
  }
  TRIPTYCH_ASSIGN_OR_RETURN(const Answer answer, ask(*session, request, !options.json));
  if (options.json) print_json(answer);
  if (options.stats) {
    const Colors c = Colors::for_fd(1);
    fmt::print("{}{}{}\n", c.dim, figures_line(answer.usage), c.reset);
  }
  return Status::ok();
}

}  // namespace triptych::cli
