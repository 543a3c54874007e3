#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "core/dtype.h"
#include "core/tensor.h"

namespace triptych {

/// A tensor of a checkpoint, under its canonical name (name_map.h).
struct TensorInfo {
  std::string name;           ///< "text.layers.0.self_attn.q_proj.weight"
  std::string original_name;  ///< as the file spells it; for messages
  std::string stored_type;    ///< as the file names it: "BF16", "F8_E4M3", "Q4_1"
  /// What read_rows gives; nothing for a stored type that we do not read (such a tensor may be
  /// ignored, but not bound).
  std::optional<DType> dtype;
  Shape shape;           ///< outermost axis first; rank 0 is a scalar
  uint64_t n_bytes = 0;  ///< of `shape` in `dtype`; as stored when dtype is empty
  std::string file;      ///< path of the file that holds it
};

/// The tokenizer.* metadata of a GGUF file, as plain values.
struct GgufVocabulary {
  std::string model;                 ///< tokenizer.ggml.model: "gpt2" or "llama"
  std::string pre;                   ///< tokenizer.ggml.pre: "smollm", "llama-bpe", ...
  std::vector<std::string> tokens;   ///< tokenizer.ggml.tokens
  std::vector<float> scores;         ///< tokenizer.ggml.scores
  std::vector<int32_t> token_types;  ///< tokenizer.ggml.token_type
  std::vector<std::string> merges;   ///< tokenizer.ggml.merges, "a b"
  std::optional<int64_t> bos_id, eos_id, unknown_id, padding_id;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

/// Elements of one row: the product of all axes but the outermost (1 for rank 0 and 1).
int64_t row_elements(const Shape& shape);
/// Rows of a tensor: its outermost axis, 1 for rank 0.
int64_t row_count(const Shape& shape);

struct CheckpointOptions {
  /// What GGUF's quantised tensors are dequantised to: kBF16, kF16 or kF32 (ggml's exact values).
  /// With SmolLM2-135M in Q4_1, 16 bits either way leave perplexity within 0.01 %; f16 stays
  /// nearer to f32 (KL of the next token 3e-6, of bf16 7e-5) and bf16 has range to spare.
  DType gguf_quants = DType::kBF16;
};

/// A checkpoint on disk: a Hugging Face folder (config.json with model.safetensors or sharded
/// safetensors) or one GGUF file of the llama family. Weights stay mapped files: nothing is read
/// until asked for. Immutable after open, so any number of threads may read.
class Checkpoint {
 public:
  /// kNotFound, kUnsupported (only pytorch .bin files, an unknown GGUF architecture), kDataLoss for
  /// broken files and kInvalidArgument for bad values; each names file and field.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& path,
                                                  const CheckpointOptions& options = {});
  virtual ~Checkpoint() = default;
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::string& path() const { return path_; }
  bool is_gguf() const { return gguf_vocabulary() != nullptr; }
  /// config.json; for GGUF a Hugging Face config of the same meaning, made from its metadata.
  const Json& config() const { return config_; }
  /// Names the config in errors: ".../config.json", or the GGUF file.
  const std::string& config_source() const { return config_source_; }
  /// generation_config.json, or null when there is none.
  const Json* generation_config() const {
    return generation_config_ ? &*generation_config_ : nullptr;
  }
  std::string generation_config_source() const { return path_ + "/generation_config.json"; }

  /// All tensors, sorted by canonical name.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  /// The tensor of that canonical name, or null.
  const TensorInfo* find(std::string_view name) const;
  /// Sum of n_bytes.
  uint64_t total_bytes() const;
  /// What was left aside on opening and why ("consolidated.safetensors: ..."), for people.
  const std::vector<std::string>& notes() const { return notes_; }

  /// For GGUF; null for folders (their tokenizer files are the text module's matter).
  virtual const GgufVocabulary* gguf_vocabulary() const { return nullptr; }
  virtual const std::string* gguf_chat_template() const { return nullptr; }

  /// Dense rows [first_row, first_row + n_rows) of the outermost axis in `info.dtype`, aligned to
  /// it (a scalar is one row of one element). Points into the mapped file where the rows lie there
  /// as they are, else into `buffer`, which is resized as needed: GGUF quants are dequantised and
  /// the row order of its q and k projections is Hugging Face's. Valid until `buffer` changes.
  /// `info` must be one of tensors(). kUnsupported names a stored type that we do not read,
  /// kInternal a range outside of the tensor.
  Result<const void*> read_rows(const TensorInfo& info, int64_t first_row, int64_t n_rows,
                                std::vector<std::byte>& buffer) const;
  /// Drops the mapped pages of rows that have been copied (whole pages only), so that loading holds
  /// the weights once; dropped pages are read from the file again when asked for. A range outside
  /// of the tensor is cut to it.
  void release(const TensorInfo& info, int64_t first_row, int64_t n_rows) const;
  /// The same for all rows.
  void release(const TensorInfo& info) const { release(info, 0, row_count(info.shape)); }

 protected:
  Checkpoint() = default;
  /// read_rows with a checked range and a known dtype.
  virtual Result<const void*> read_checked(const TensorInfo& info, int64_t first_row,
                                           int64_t n_rows,
                                           std::vector<std::byte>& buffer) const = 0;
  /// Where the stored bytes of a tensor lie; they hold its rows one after another, each of one
  /// size.
  struct StoredBytes {
    const MappedFile* map;
    uint64_t offset;
    uint64_t n_bytes;
  };
  virtual StoredBytes stored_bytes(const TensorInfo& info) const = 0;
  /// Index of one of tensors() (for the place in the file that a subclass keeps beside it).
  size_t index_of(const TensorInfo& info) const {
    return static_cast<size_t>(&info - tensors_.data());
  }

  std::string path_;
  std::string config_source_;
  Json config_;
  std::optional<Json> generation_config_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::string> notes_;
};

}  // namespace triptych
