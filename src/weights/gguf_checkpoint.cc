#include "weights/gguf_checkpoint.h"

#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "weights/gguf.h"
#include "weights/gguf_dequant.h"
#include "weights/gguf_llama.h"
#include "weights/tensor_list.h"

namespace triptych {
namespace {

Result<GgufVocabulary> read_vocabulary(const GgufFile& file) {
  GgufVocabulary out;
  TRIPTYCH_ASSIGN_OR_RETURN(const auto model, file.find_string("tokenizer.ggml.model"));
  TRIPTYCH_ASSIGN_OR_RETURN(const auto pre, file.find_string("tokenizer.ggml.pre"));
  out.model = model.value_or("");
  out.pre = pre.value_or("");
  TRIPTYCH_ASSIGN_OR_RETURN(out.tokens, file.find_strings("tokenizer.ggml.tokens"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.scores, file.find_floats("tokenizer.ggml.scores"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.token_types, file.find_ints("tokenizer.ggml.token_type"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.merges, file.find_strings("tokenizer.ggml.merges"));
  const auto highest = static_cast<int64_t>(out.tokens.size()) - 1;
  const auto id = [&](std::string_view key) { return file.find_int(key, 0, highest); };
  TRIPTYCH_ASSIGN_OR_RETURN(out.bos_id, id("tokenizer.ggml.bos_token_id"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.eos_id, id("tokenizer.ggml.eos_token_id"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.unknown_id, id("tokenizer.ggml.unknown_token_id"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.padding_id, id("tokenizer.ggml.padding_token_id"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.add_bos, file.find_bool("tokenizer.ggml.add_bos_token"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.add_eos, file.find_bool("tokenizer.ggml.add_eos_token"));
  TRIPTYCH_ASSIGN_OR_RETURN(out.add_space_prefix,
                            file.find_bool("tokenizer.ggml.add_space_prefix"));
  return out;
}

class GgufCheckpoint : public Checkpoint {
 public:
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& path,
                                                  const CheckpointOptions& options) {
    if (options.gguf_quants != DType::kBF16 && options.gguf_quants != DType::kF16 &&
        options.gguf_quants != DType::kF32) {
      return invalid_argument(fmt::format("GGUF quants cannot be read as {}: use f32, bf16 or f16",
                                          dtype_name(options.gguf_quants)));
    }
    std::unique_ptr<GgufCheckpoint> out(new GgufCheckpoint);
    out->path_ = path;
    out->config_source_ = path;
    TRIPTYCH_ASSIGN_OR_RETURN(out->map_, MappedFile::open(path));
    TRIPTYCH_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::parse(out->map_->bytes(), path));
    TRIPTYCH_ASSIGN_OR_RETURN(out->config_, gguf_llama_config(file));
    TRIPTYCH_ASSIGN_OR_RETURN(out->vocabulary_, read_vocabulary(file));
    TRIPTYCH_ASSIGN_OR_RETURN(out->chat_template_, file.find_string("tokenizer.chat_template"));
    TRIPTYCH_RETURN_IF_ERROR(out->list_tensors(file, options.gguf_quants));
    return std::unique_ptr<Checkpoint>(std::move(out));
  }

  const GgufVocabulary* gguf_vocabulary() const override { return &vocabulary_; }
  const std::string* gguf_chat_template() const override {
    return chat_template_ ? &*chat_template_ : nullptr;
  }

 protected:
  Result<const void*> read_checked(const TensorInfo& info, int64_t first_row, int64_t n_rows,
                                   std::vector<std::byte>& buffer) const override {
    const Place& place = places_[index_of(info)];
    const int64_t row_length = row_elements(info.shape);
    const auto element = static_cast<uint64_t>(dtype_bytes(*info.dtype));
    const GgmlBlock block = *ggml_block(place.type);
    const uint64_t stored_row =
        static_cast<uint64_t>(row_length) / block.n_elements * block.n_bytes;
    const std::byte* data = map_->bytes().data() + place.offset;

    const std::byte* rows = data + static_cast<uint64_t>(first_row) * stored_row;
    const bool as_stored = place.heads == 0 && block.n_elements == 1;
    if (as_stored && reinterpret_cast<uintptr_t>(rows) % element == 0) return rows;

    const uint64_t row_bytes = static_cast<uint64_t>(row_length) * element;
    buffer.resize(static_cast<uint64_t>(n_rows) * row_bytes);
    for (int64_t i = 0; i < n_rows; ++i) {
      const auto stored = static_cast<uint64_t>(stored_row_of(first_row + i, info, place));
      gguf_convert(place.type, data + stored * stored_row, row_length, *info.dtype,
                   buffer.data() + static_cast<uint64_t>(i) * row_bytes);
    }
    return buffer.data();
  }
  StoredBytes stored_bytes(const TensorInfo& info) const override {
    const Place& place = places_[index_of(info)];
    return {map_.get(), place.offset, place.n_bytes};
  }

 private:
  struct Place {
    uint64_t offset;
    uint64_t n_bytes;
    GgmlType type;
    int64_t heads;  ///< of a q or k projection, whose rows are permuted; 0 for other tensors
  };

  GgufCheckpoint() = default;

  /// llama.cpp rotates neighbouring elements, so its converter interleaves the two halves of each
  /// head's q and k rows. Row j * half + i of a Hugging Face head (j: half, i: pair) is row 2 i + j
  /// here.
  static int64_t stored_row_of(int64_t row, const TensorInfo& info, const Place& place) {
    if (place.heads == 0) return row;
    const int64_t head_dim = info.shape[0] / place.heads;
    const int64_t half = head_dim / 2;
    const int64_t within = row % head_dim;
    return row - within + within % half * 2 + within / half;
  }

  int64_t permuted_heads(std::string_view name) const {
    const auto projection = [&](std::string_view p) {
      return name.ends_with(std::string(p) + ".weight") || name.ends_with(std::string(p) + ".bias");
    };
    if (projection("self_attn.q_proj")) return config_.find("num_attention_heads")->int_value();
    if (projection("self_attn.k_proj")) return config_.find("num_key_value_heads")->int_value();
    return 0;
  }

  Status list_tensors(const GgufFile& file, DType quants) {
    std::vector<Place> places;
    for (const GgufTensor& t : file.tensors()) {
      if (t.name == kGgufRopeFactors) continue;  // part of the config
      TensorInfo info{.name = gguf_llama_name(t.name).value_or(t.name),
                      .original_name = t.name,
                      .stored_type = ggml_type_name(t.type),
                      .dtype = std::nullopt,
                      .shape = t.shape,
                      .n_bytes = t.n_bytes,
                      .file = path_};
      const bool whole_rows =
          t.shape.rank() > 1 || ggml_block(t.type).value_or(GgmlBlock{1, 1}).n_elements == 1;
      if (ggml_type_is_read(t.type) && whole_rows) {
        info.dtype = gguf_row_dtype(t.type, quants);
        info.n_bytes = static_cast<uint64_t>(t.shape.n_elements() * dtype_bytes(*info.dtype));
      }
      const int64_t heads = permuted_heads(info.name);
      if (heads > 0 && t.shape[0] % (2 * heads) != 0) {
        return invalid_argument(
            fmt::format("{}: tensor \"{}\": {} rows do not divide into {} "
                        "heads of even size",
                        path_, t.name, t.shape[0], heads));
      }
      places.push_back({t.offset, t.n_bytes, t.type, heads});
      tensors_.push_back(std::move(info));
    }
    TRIPTYCH_ASSIGN_OR_RETURN(const std::vector<size_t> order, sort_by_name(tensors_));
    for (size_t i : order) places_.push_back(places[i]);
    return Status::ok();
  }

  std::shared_ptr<const MappedFile> map_;
  GgufVocabulary vocabulary_;
  std::optional<std::string> chat_template_;
  std::vector<Place> places_;
};

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_gguf(const std::string& path,
                                              const CheckpointOptions& options) {
  return GgufCheckpoint::open(path, options);
}

}  // namespace triptych
