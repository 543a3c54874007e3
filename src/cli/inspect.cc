#include "cli/inspect.h"

#include <fmt/format.h>

#include "base/json.h"
#include "cli/terminal.h"

namespace triptych::cli {
namespace {

Json numbers_of(const ModelPart& part) {
  Json out = Json::object();
  out.set("name", Json::string(part.name));
  out.set("parameters", Json::integer(part.n_parameters));
  out.set("bytes", Json::integer(static_cast<int64_t>(part.n_bytes)));
  out.set("dtype", Json::string(std::string(dtype_name(part.dtype))));
  return out;
}

Json model_json(const Model& model) {
  const ModelSpec& spec = model.spec;
  Json out = Json::object();
  out.set("model_type", Json::string(spec.model_type));
  out.set("architecture", Json::string(spec.architecture));
  out.set("decoder", Json::string(spec.text.model_type));
  out.set("context_length", Json::integer(spec.text.max_positions));
  out.set("vocab_size", Json::integer(spec.text.vocab_size));
  out.set("hidden_size", Json::integer(spec.text.hidden_size));
  out.set("layers", Json::integer(spec.text.n_layers));
  out.set("heads", Json::integer(spec.text.n_heads));
  out.set("kv_heads", Json::integer(spec.text.n_kv_heads));
  out.set("head_dim", Json::integer(spec.text.head_dim));
  out.set("rope", Json::string(spec.text.rope.type));
  if (spec.vision) {
    out.set("vision_tower", Json::string(spec.vision->model_type));
    out.set("image_size", Json::integer(spec.vision->image_size));
    out.set("patch_size", Json::integer(spec.vision->patch_size));
    out.set("image_token_id", Json::integer(spec.image_token_id.value_or(-1)));
    out.set("tokens_per_image", Json::integer(spec.vision->n_features()));
  }
  Json parts = Json::array();
  for (const ModelPart& part : model.weights->parts()) parts.append(numbers_of(part));
  out.set("parts", std::move(parts));
  Json ignored = Json::array();
  for (const std::string& name : model.ignored_tensors) ignored.append(Json::string(name));
  out.set("ignored_tensors", std::move(ignored));
  return out;
}

Json plan_json(const MemoryPlan& plan) {
  Json out = Json::object();
  out.set("weights", Json::integer(static_cast<int64_t>(plan.weight_bytes)));
  out.set("kv_cache", Json::integer(static_cast<int64_t>(plan.kv_bytes)));
  out.set("workspace", Json::integer(static_cast<int64_t>(plan.workspace_bytes)));
  out.set("encode", Json::integer(static_cast<int64_t>(plan.encode_bytes)));
  out.set("total", Json::integer(static_cast<int64_t>(plan.total())));
  out.set("encoder_cache_cap", Json::integer(static_cast<int64_t>(plan.media.encoder_cache_bytes)));
  out.set("pixel_cache_cap", Json::integer(static_cast<int64_t>(plan.media.pixel_cache_bytes)));
  out.set("media_in_work_cap", Json::integer(static_cast<int64_t>(plan.media.in_work_bytes)));
  out.set("requests_cap", Json::integer(static_cast<int64_t>(plan.media.request_bytes)));
  out.set("at_most", Json::integer(static_cast<int64_t>(plan.at_most())));
  out.set("context_tokens", Json::integer(plan.context_tokens));
  out.set("kv_dtype", Json::string(std::string(dtype_name(plan.kv.dtype))));
  return out;
}

void print_model(const Model& model) {
  const ModelSpec& spec = model.spec;
  const TextSpec& t = spec.text;
  fmt::print("architecture     {} ({})\n", spec.model_type,
             spec.architecture.empty() ? "unnamed" : spec.architecture);
  fmt::print(
      "decoder          {}: {} layers of {}, {} heads ({} KV) of {}, MLP {}, vocabulary {}\n",
      t.model_type, t.n_layers, t.hidden_size, t.n_heads, t.n_kv_heads, t.head_dim,
      t.intermediate_size, t.vocab_size);
  fmt::print("context          {} tokens, RoPE {} (theta {:g})\n", t.max_positions, t.rope.type,
             t.rope.theta);
  if (spec.vision) {
    const VisionSpec& v = *spec.vision;
    fmt::print(
        "vision tower     {}: {} of {} layers of {} used, {} heads, {}x{} pixels in patches "
        "of {}\n",
        v.model_type, v.n_blocks_run(), v.n_layers, v.hidden_size, v.n_heads, v.image_size,
        v.image_size, v.patch_size);
    fmt::print("media tokens     image token id {}; a picture takes {} ({}x{} patches{}{})\n",
               spec.image_token_id.value_or(-1), v.n_features(), v.grid(), v.grid(),
               v.class_token ? ", class token" : "", v.drop_first_row ? ", first row dropped" : "");
  }
  fmt::print("\n{:<16} {:>12} {:>12} {:>6}\n", "part", "parameters", "memory", "dtype");
  int64_t parameters = 0;
  for (const ModelPart& part : model.weights->parts()) {
    fmt::print("{:<16} {:>12} {:>12} {:>6}\n", part.name,
               human_count(static_cast<double>(part.n_parameters)),
               human_bytes(static_cast<double>(part.n_bytes)), dtype_name(part.dtype));
    parameters += part.n_parameters;
  }
  fmt::print("{:<16} {:>12} {:>12}\n", "all", human_count(static_cast<double>(parameters)),
             human_bytes(static_cast<double>(model.weights->n_bytes())));
}

void print_plan(const MemoryPlan& plan) {
  const auto row = [](const char* what, uint64_t n_bytes, const std::string& note) {
    fmt::print("{:<16} {:>12}   {}\n", what, human_bytes(static_cast<double>(n_bytes)), note);
  };
  fmt::print("\nmemory plan\n");
  row("weights", plan.weight_bytes, "");
  row("KV cache", plan.kv_bytes,
      fmt::format("{} pages for {} tokens, {}, {} a token", plan.kv_pages, plan.context_tokens,
                  dtype_name(plan.kv.dtype),
                  human_bytes(static_cast<double>(plan.kv.page_bytes()) / kPageTokens)));
  row("workspace", plan.workspace_bytes, fmt::format("steps of {} rows", plan.step_rows));
  row("encoding", plan.encode_bytes, "one picture in work");
  row("total", plan.total(), "taken at the start");
  if (plan.media.in_work_bytes > 0) {
    row("encoder cache", plan.media.encoder_cache_bytes, "at most: features of media seen before");
    row("pixel cache", plan.media.pixel_cache_bytes,
        "at most: prepared pixels of media seen before");
    row("media in work", plan.media.in_work_bytes, "at most: pixels and encoder state");
  }
  row("requests", plan.media.request_bytes, "at most: those in work, with their media files");
  row("all", plan.at_most(), "at most");
}

struct PictureCost {
  std::string file;
  ImageCost cost;
  OpCost encode;
  OpCost prefill;
  int64_t kv_bytes = 0;
};

Result<PictureCost> picture_cost(Session& session, const std::string& path) {
  PictureCost out;
  out.file = path;
  TRIPTYCH_ASSIGN_OR_RETURN(const MediaItem item, load_media(path));
  TRIPTYCH_ASSIGN_OR_RETURN(out.cost, session.prep().cost(item));
  const Model& model = session.runner().model();
  const DType kv_dtype = session.runner().plan().kv.dtype;
  out.encode = model.vision_tower->cost();
  out.encode += model.projector->cost(out.cost.n_tokens);
  out.prefill = model.decoder->cost(out.cost.n_tokens, out.cost.n_tokens, 0, kv_dtype);
  out.kv_bytes = out.cost.n_tokens * model.spec.kv_bytes_per_token(kv_dtype);
  return out;
}

Json picture_json(const PictureCost& p) {
  Json out = Json::object();
  out.set("file", Json::string(p.file));
  out.set("format", Json::string(std::string(image_format_name(p.cost.header.format))));
  out.set("width", Json::integer(p.cost.header.width));
  out.set("height", Json::integer(p.cost.header.height));
  out.set("resized_width", Json::integer(p.cost.plan.resized_width));
  out.set("resized_height", Json::integer(p.cost.plan.resized_height));
  out.set("pixel_width", Json::integer(p.cost.plan.width));
  out.set("pixel_height", Json::integer(p.cost.plan.height));
  out.set("tokens", Json::integer(p.cost.n_tokens));
  out.set("encode_flops", Json::number(p.encode.flops));
  out.set("prefill_flops", Json::number(p.prefill.flops));
  out.set("kv_bytes", Json::integer(p.kv_bytes));
  out.set("decode_bytes", Json::integer(p.cost.header.decoded_bytes));
  return out;
}

void print_picture(const PictureCost& p) {
  const ImagePlan& plan = p.cost.plan;
  fmt::print("\n{}: {} {}x{}\n", p.file, image_format_name(p.cost.header.format),
             p.cost.header.width, p.cost.header.height);
  fmt::print("  resized to {}x{}, the tower sees {}x{}\n", plan.resized_width, plan.resized_height,
             plan.width, plan.height);
  fmt::print("  {} tokens, {} of KV cache, decoding takes up to {}\n", p.cost.n_tokens,
             human_bytes(static_cast<double>(p.kv_bytes)),
             human_bytes(static_cast<double>(p.cost.header.decoded_bytes)));
  fmt::print("  {:.2f} GFLOP to encode, {:.2f} GFLOP to prefill\n", p.encode.flops / 1e9,
             p.prefill.flops / 1e9);
}

}  // namespace

Status run_inspect(const InspectOptions& options) {
  TRIPTYCH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::open(options.session));
  std::vector<PictureCost> pictures;
  for (const std::string& path : options.images) {
    TRIPTYCH_ASSIGN_OR_RETURN(PictureCost picture, picture_cost(*session, path));
    pictures.push_back(std::move(picture));
  }
  const Model& model = session->runner().model();
  if (options.json) {
    Json out = model_json(model);
    out.set("memory_plan", plan_json(session->runner().plan()));
    Json list = Json::array();
    for (const PictureCost& p : pictures) list.append(picture_json(p));
    out.set("pictures", std::move(list));
    fmt::print("{}\n", out.dump(1));
    return Status::ok();
  }
  print_model(model);
  print_plan(session->runner().plan());
  for (const std::string& note : session->checkpoint().notes()) fmt::print("note: {}\n", note);
  if (!model.ignored_tensors.empty()) {
    fmt::print("\nignored tensors ({})\n", model.ignored_tensors.size());
    for (const std::string& name : model.ignored_tensors) fmt::print("  {}\n", name);
  }
  fmt::print("missing tensors  none (loading is strict)\n");
  if (!session->prep().has_chat_template()) {
    fmt::print("chat template    none: chat needs --chat-template FILE or --raw\n");
  }
  for (const PictureCost& p : pictures) print_picture(p);
  return Status::ok();
}

}  // namespace triptych::cli
