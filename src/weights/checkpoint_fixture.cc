#include "weights/checkpoint_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "core/dtype.h"

namespace triptych {
namespace {

template <typename T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}
void put_string(std::string& out, std::string_view v) {
  put<uint64_t>(out, v.size());
  out.append(v);
}

template <typename T>
std::string array_value(uint32_t element, const std::vector<T>& v) {
  std::string out;
  put(out, element);
  put<uint64_t>(out, v.size());
  for (const T& x : v) put(out, x);
  return out;
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "triptych_test_XXXXXX";
  const char* made = ::mkdtemp(pattern.data());
  EXPECT_NE(made, nullptr);
  path_ = made != nullptr ? made : "";
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, std::string_view bytes) const {
  std::string path = path_ + "/" + name;
  EXPECT_TRUE(write_file(path, bytes).is_ok());
  return path;
}

std::string f32_bytes(const std::vector<float>& values) {
  std::string out;
  for (float v : values) put(out, v);
  return out;
}
std::string bf16_bytes(const std::vector<float>& values) {
  std::string out;
  for (float v : values) put(out, f32_to_bf16(v));
  return out;
}
std::string f16_bytes(const std::vector<float>& values) {
  std::string out;
  for (float v : values) put(out, f32_to_f16(v));
  return out;
}

std::string safetensors_raw(std::string_view header, std::string_view data) {
  std::string out;
  put_string(out, header);
  out.append(data);
  return out;
}

std::string safetensors_bytes(const std::vector<FixtureTensor>& tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::string data;
  for (const FixtureTensor& t : tensors) {
    header +=
        fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", t.name, t.type,
                    fmt::join(t.shape, ","), data.size(), data.size() + t.bytes.size());
    data += t.bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // as the format's own writer aligns data
  return safetensors_raw(header, data);
}

GgufWriter& GgufWriter::key_raw(std::string_view key, uint32_t type, std::string_view value) {
  put_string(keys_, key);
  put(keys_, type);
  keys_.append(value);
  ++n_keys_;
  return *this;
}
GgufWriter& GgufWriter::key_u32(std::string_view key, uint32_t v) {
  std::string value;
  put(value, v);
  return key_raw(key, 4, value);
}
GgufWriter& GgufWriter::key_f32(std::string_view key, float v) {
  std::string value;
  put(value, v);
  return key_raw(key, 6, value);
}
GgufWriter& GgufWriter::key_bool(std::string_view key, bool v) {
  return key_raw(key, 7, v ? std::string(1, '\1') : std::string(1, '\0'));
}
GgufWriter& GgufWriter::key_string(std::string_view key, std::string_view v) {
  std::string value;
  put_string(value, v);
  return key_raw(key, 8, value);
}
GgufWriter& GgufWriter::key_strings(std::string_view key, const std::vector<std::string>& v) {
  std::string value;
  put<uint32_t>(value, 8);
  put<uint64_t>(value, v.size());
  for (const std::string& s : v) put_string(value, s);
  return key_raw(key, 9, value);
}
GgufWriter& GgufWriter::key_floats(std::string_view key, const std::vector<float>& v) {
  return key_raw(key, 9, array_value(6, v));
}
GgufWriter& GgufWriter::key_ints(std::string_view key, const std::vector<int32_t>& v) {
  return key_raw(key, 9, array_value(5, v));
}

GgufWriter& GgufWriter::tensor_entry(std::string_view name, uint32_t type,
                                     const std::vector<uint64_t>& sizes, uint64_t offset) {
  put_string(tensors_, name);
  put(tensors_, static_cast<uint32_t>(sizes.size()));
  for (uint64_t s : sizes) put(tensors_, s);
  put(tensors_, type);
  put(tensors_, offset);
  ++n_tensors_;
  return *this;
}
GgufWriter& GgufWriter::tensor(std::string_view name, GgmlType type,
                               const std::vector<uint64_t>& sizes, std::string_view data) {
  tensor_entry(name, static_cast<uint32_t>(type), sizes, data_.size());
  data_.append(data);
  data_.resize((data_.size() + 31) / 32 * 32, '\0');
  return *this;
}
GgufWriter& GgufWriter::claim(uint64_t n_tensors, uint64_t n_keys) {
  claimed_ = true;
  claimed_tensors_ = n_tensors;
  claimed_keys_ = n_keys;
  return *this;
}

std::string GgufWriter::bytes(uint32_t version) const {
  std::string out = "GGUF";
  put(out, version);
  put(out, claimed_ ? claimed_tensors_ : n_tensors_);
  put(out, claimed_ ? claimed_keys_ : n_keys_);
  out += keys_ + tensors_;
  out.resize((out.size() + 31) / 32 * 32, '\0');
  return out + data_;
}

GgufWriter tiny_llama_gguf(GgmlType type) {
  GgufWriter w;
  w.key_string("general.architecture", "llama")
      .key_u32("llama.block_count", 2)
      .key_u32("llama.context_length", 64)
      .key_u32("llama.embedding_length", 32)
      .key_u32("llama.feed_forward_length", 64)
      .key_u32("llama.attention.head_count", 2)
      .key_u32("llama.attention.head_count_kv", 1)
      .key_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .key_f32("llama.rope.freq_base", 10000.0F)
      .key_string("tokenizer.ggml.model", "gpt2")
      .key_string("tokenizer.ggml.pre", "smollm")
      .key_strings("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e", "f", "<s>", "</s>"})
      .key_floats("tokenizer.ggml.scores", {0, 0, 0, 0, 0, 0, 0, 0})
      .key_ints("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 1, 3, 3})
      .key_strings("tokenizer.ggml.merges", {"a b"})
      .key_u32("tokenizer.ggml.bos_token_id", 6)
      .key_u32("tokenizer.ggml.eos_token_id", 7)
      .key_bool("tokenizer.ggml.add_bos_token", false)
      .key_string("tokenizer.chat_template", "{{ messages }}");
  const GgmlBlock block = *ggml_block(type);
  const auto matrix = [&](const std::string& name, uint64_t k, uint64_t n) {
    std::string data(k / block.n_elements * block.n_bytes * n, '\0');
    // Low exponents in every type: bytes below 0x30 keep scales small and finite.
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 % 0x30);
    w.tensor(name, type, {k, n}, data);
  };
  const auto norm = [&](const std::string& name) {
    w.tensor(name, GgmlType::kF32, {32}, f32_bytes(std::vector<float>(32, 1.0F)));
  };
  matrix("token_embd.weight", 32, 8);
  norm("output_norm.weight");
  for (int layer = 0; layer < 2; ++layer) {
    const std::string blk = fmt::format("blk.{}.", layer);
    norm(blk + "attn_norm.weight");
    norm(blk + "ffn_norm.weight");
    matrix(blk + "attn_q.weight", 32, 32);
    matrix(blk + "attn_k.weight", 32, 16);
    matrix(blk + "attn_v.weight", 32, 16);
    matrix(blk + "attn_output.weight", 32, 32);
    matrix(blk + "ffn_gate.weight", 32, 64);
    matrix(blk + "ffn_up.weight", 32, 64);
    matrix(blk + "ffn_down.weight", 64, 32);
  }
  return w;
}

}  // namespace triptych
