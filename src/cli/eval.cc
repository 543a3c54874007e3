#include "cli/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/file.h"
#include "base/json.h"
#include "cli/eval_score.h"
#include "cli/terminal.h"

namespace triptych::cli {
namespace {

struct Question {
  std::string task;
  std::vector<std::string> images;  ///< paths below the set's folder
  std::string text;
  std::string answer;
  std::vector<std::pair<std::string, std::string>> history;  ///< earlier turns: asked, answered
  Json id;
};

struct TaskResult {
  int64_t n = 0;
  int64_t right = 0;
  double items = 0;  ///< sum of item scores
};

Result<Question> parse_question(const JsonRef& line) {
  Question q;
  TRIPTYCH_ASSIGN_OR_RETURN(q.task, line.at("task").as_string());
  TRIPTYCH_ASSIGN_OR_RETURN(q.text, line.at("question").as_string());
  TRIPTYCH_ASSIGN_OR_RETURN(q.answer, line.at("answer").as_string());
  const JsonRef images = line.at("images");
  if (!images.json().is_array()) return images.error("expected a list of picture files");
  for (size_t i = 0; i < images.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string name, images.at(i).as_string());
    q.images.push_back(std::move(name));
  }
  const JsonRef history = line.at("history");
  for (size_t i = 0; i < history.size(); ++i) {
    TRIPTYCH_ASSIGN_OR_RETURN(std::string asked, history.at(i).at(0).as_string());
    TRIPTYCH_ASSIGN_OR_RETURN(std::string answered, history.at(i).at(1).as_string());
    q.history.emplace_back(std::move(asked), std::move(answered));
  }
  if (const Json* id = line.json().find("id"); id != nullptr) q.id = *id;
  return q;
}

Result<std::vector<Question>> read_questions(const std::string& folder, int64_t limit) {
  const std::string path = folder + "/questions.jsonl";
  TRIPTYCH_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  std::vector<Question> out;
  size_t begin = 0;
  for (int64_t number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    const std::string source = fmt::format("{}:{}", path, number);
    Result<Json> json = parse_json(line);
    if (!json.is_ok()) return json.status().with_context(source);
    TRIPTYCH_ASSIGN_OR_RETURN(Question q, parse_question(JsonRef(*json, source)));
    out.push_back(std::move(q));
  }
  if (out.empty()) return invalid_argument(path + ": holds no questions");
  if (limit <= 0 || limit >= static_cast<int64_t>(out.size())) return out;
  const size_t stride = out.size() / static_cast<size_t>(limit);
  std::vector<Question> some;
  for (size_t i = 0; i < out.size(); i += stride) some.push_back(std::move(out[i]));
  return some;
}

/// Replaces a picture by its mean, channel by channel: what a model can say without seeing.
Result<std::shared_ptr<const PreparedMedia>> blind_picture(const PreparedMedia& media) {
  auto out = std::make_shared<PreparedMedia>();
  out->n_tokens = media.n_tokens;
  for (size_t i = 0; i < media.id.size(); ++i) {  // other pixels, another id
    out->id[i] = static_cast<uint8_t>(~media.id[i]);
  }
  TRIPTYCH_ASSIGN_OR_RETURN(out->pixels, Tensor::allocate(DType::kF32, media.pixels.shape()));
  const int64_t area = media.pixels.shape()[1] * media.pixels.shape()[2];
  for (int64_t c = 0; c < 3; ++c) {
    const float* channel = media.pixels.f32() + c * area;
    const double sum = std::accumulate(channel, channel + area, 0.0);
    std::fill_n(out->pixels.f32() + c * area, area,
                static_cast<float>(sum / static_cast<double>(area)));
  }
  return std::shared_ptr<const PreparedMedia>(std::move(out));
}

Result<Answer> ask(Session& session, const EvalOptions& options, const Question& q) {
  Request request;
  std::vector<size_t> media;
  for (const std::string& name : q.images) {
    TRIPTYCH_ASSIGN_OR_RETURN(MediaItem item, load_media(options.set + "/" + name));
    media.push_back(request.media.size());
    request.media.push_back(std::move(item));
  }
  // Pictures belong to the first turn.
  for (const auto& [asked, answered] : q.history) {
    request.messages.push_back(user_message(media, asked));
    request.messages.push_back({"assistant", {{answered, std::nullopt}}});
    media.clear();
  }
  request.messages.push_back(user_message(media, q.text));
  request.sampling.max_tokens = 256;
  TRIPTYCH_ASSIGN_OR_RETURN(
      PreparedRequest prepared,
      session.prep().prepare(request, session.context_tokens(), session.runner().pool(),
                             session.runner().registry()));
  if (options.blind) {
    for (auto& item : prepared.media) {
      TRIPTYCH_ASSIGN_OR_RETURN(item, blind_picture(*item));
    }
  }
  return session.answer_prepared(std::move(prepared), nullptr);
}

Json to_json(const TaskResult& r) {
  const auto [low, high] = wilson_interval(r.right, r.n);
  Json out = Json::object();
  out.set("total", Json::integer(r.n));
  out.set("correct", Json::integer(r.right));
  out.set("accuracy", Json::number(static_cast<double>(r.right) / static_cast<double>(r.n)));
  out.set("low", Json::number(low));
  out.set("high", Json::number(high));
  out.set("items", Json::number(r.items / static_cast<double>(r.n)));
  return out;
}

void print_table(const std::map<std::string, TaskResult>& tasks, const TaskResult& all) {
  fmt::print("{:<14} {:>6} {:>9} {:>17} {:>8}\n", "task", "n", "accuracy", "95 % interval",
             "items");
  const auto row = [](const std::string& task, const TaskResult& r) {
    const auto [low, high] = wilson_interval(r.right, r.n);
    fmt::print("{:<14} {:>6} {:>8.2f}% {:>7.2f} - {:>6.2f}% {:>7.2f}%\n", task, r.n,
               100.0 * static_cast<double>(r.right) / static_cast<double>(r.n), 100 * low,
               100 * high, 100 * r.items / static_cast<double>(r.n));
  };
  for (const auto& [task, result] : tasks) row(task, result);
  row("all", all);
}

}  // namespace

Status run_eval(const EvalOptions& options) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<Question> questions,
                            read_questions(options.set, options.limit));
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.session));
  Json answers = Json::array();
  std::map<std::string, TaskResult> tasks;
  TaskResult all;
  {
    ProgressBar bar(options.blind ? "blind" : "eval", static_cast<int64_t>(questions.size()));
    for (const Question& q : questions) {
      TRIPTYCH_ASSIGN_OR_RETURN(const Answer answer, ask(*session, options, q));
      const bool right = answer.text == q.answer;
      const double items = right ? 1.0 : item_score(answer.text, q.answer);
      for (TaskResult* r : {&tasks[q.task], &all}) {
        ++r->n;
        r->right += right ? 1 : 0;
        r->items += items;
      }
      Json line = Json::object();
      line.set("id", q.id);
      line.set("task", Json::string(q.task));
      line.set("question", Json::string(q.text));
      line.set("expected", Json::string(q.answer));
      line.set("answer", Json::string(answer.text));
      line.set("correct", Json::boolean(right));
      answers.append(std::move(line));
      bar.update(all.n, fmt::format("{:.1f} % right", 100.0 * static_cast<double>(all.right) /
                                                          static_cast<double>(all.n)));
    }
  }
  if (!options.json) {
    print_table(tasks, all);
    return Status::ok();
  }
  Json out = Json::object();
  out.set("set", Json::string(options.set));
  out.set("blind", Json::boolean(options.blind));
  Json by_task = Json::object();
  for (const auto& [task, result] : tasks) by_task.set(task, to_json(result));
  out.set("tasks", std::move(by_task));
  out.set("all", to_json(all));
  out.set("answers", std::move(answers));
  fmt::print("{}\n", out.dump(1));
  return Status::ok();
}

}  // namespace triptych::cli
