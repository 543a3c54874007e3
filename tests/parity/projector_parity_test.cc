// The adapter projector Linear -> LayerNorm at its public shape, [1, 257, 1024] -> [1, 257, 512],
// against torch. Inputs and weights come from a formula (tools/parity/README.md), so that only a
// few rows of the result are stored.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "backends/backend_list.h"
#include "base/file.h"
#include "models/projectors/layer_norm_projector.h"
#include "parity/golden.h"

namespace triptych::parity {
namespace {

/// Value i of a stream: scale * (b / 2^23 - 1) + offset, b the upper 24 bits of splitmix64.
std::vector<float> values_by_formula(const JsonRef& spec) {
  const auto stream = static_cast<uint64_t>(spec.at("stream").json().int_value());
  const double scale = spec.at("scale").json().number_value();
  const double offset = spec.at("offset").json().number_value();
  size_t n = 1;
  for (const Json& dim : spec.at("shape").json().elements()) {
    n *= static_cast<size_t>(dim.int_value());
  }
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    uint64_t z = ((stream << 32) + i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    out[i] = static_cast<float>(offset + scale * (static_cast<double>(z >> 40) * 0x1p-23 - 1));
  }
  return out;
}

std::string tensor_header(const std::string& name, const std::string& shape, size_t begin,
                          size_t end) {
  return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

/// A folder with the projector's four tensors as safetensors.
std::string write_checkpoint(const JsonRef& values) {
  const std::string folder = testing::TempDir() + "linear_layernorm";
  std::filesystem::create_directories(folder);
  const std::pair<const char*, const char*> tensors[] = {{"linear.weight", "512,1024"},
                                                         {"linear.bias", "512"},
                                                         {"layer_norm.weight", "512"},
                                                         {"layer_norm.bias", "512"}};
  std::string header;
  std::string body;
  for (const auto& [name, shape] : tensors) {
    const std::vector<float> data = values_by_formula(values.at(name));
    const size_t begin = body.size();
    body.append(reinterpret_cast<const char*>(data.data()), data.size() * sizeof(float));
    header +=
        (header.empty() ? "{" : ",") +
        tensor_header(std::string("multi_modal_projector.") + name, shape, begin, body.size());
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  EXPECT_TRUE(write_file(folder + "/model.safetensors", file + header + body).is_ok());
  EXPECT_TRUE(write_file(folder + "/config.json", "{\"model_type\":\"llava\"}").is_ok());
  return folder;
}

/// Compares the rows that the golden stores; `output` is [257, 512].
void expect_rows(const JsonRef& golden, const std::vector<float>& output) {
  const auto tensors = read_tensors(golden.at("tensors").json().string_value());
  ASSERT_TRUE(tensors.is_ok()) << tensors.status().message();
  const Values& wanted = tensors->at("rows");
  double square = 0;
  for (float v : wanted.data) square += static_cast<double>(v) * v;
  const double rms = std::sqrt(square / static_cast<double>(wanted.data.size()));
  const double tolerance = golden.at("tolerance").json().number_value() * rms;
  const JsonRef rows = golden.at("rows");
  ASSERT_EQ(wanted.data.size(), rows.size() * 512);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows.at(i).json().int_value());
    for (size_t j = 0; j < 512; ++j) {
      ASSERT_NEAR(output[row * 512 + j], wanted.data[i * 512 + j], tolerance)
          << "row " << row << " column " << j;
    }
  }
}

TEST(ProjectorParity, LinearLayerNormAtItsPublicShape) {
  const std::string root = "tests/parity/goldens/linear_layernorm/";
  const Result<Json> json = parse_json_file(root + "golden.json");
  ASSERT_TRUE(json.is_ok()) << json.status().message();
  const JsonRef golden(*json, root + "golden.json");
  const JsonRef values = golden.at("values");
  for (const auto& [name, first] : golden.at("first_values").json().members()) {
    const std::vector<float> ours = values_by_formula(values.at(name));
    for (size_t i = 0; i < first.elements().size(); ++i) {
      ASSERT_EQ(ours[i], static_cast<float>(first.elements()[i].number_value())) << name;
    }
  }
  Settings settings;
  const Result<Backend> backend = backends().front().make(settings);
  ASSERT_TRUE(backend.is_ok());
  const Result<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::open(write_checkpoint(values));
  ASSERT_TRUE(checkpoint.is_ok()) << checkpoint.status().message();
  ThreadPool pool(2);
  WeightLoader loader(**checkpoint);
  const Result<std::unique_ptr<WeightStore>> store =
      WeightStore::create(loader, backend->kernels, Stream{&pool, nullptr}, false);
  ASSERT_TRUE(store.is_ok());
  ProjectorSpec spec;
  spec.kind = ProjectorSpec::Kind::kLinearLayerNorm;
  spec.layer_norm_eps = static_cast<float>(golden.at("epsilon").json().number_value());
  const Result<std::unique_ptr<Projector>> projector =
      load_layer_norm_projector(spec, 1024, 512, **store);
  ASSERT_TRUE(projector.is_ok()) << projector.status().message();
  ASSERT_TRUE(loader.finish().is_ok());

  std::vector<float> input = values_by_formula(values.at("input"));
  std::vector<float> output(257 * 512);
  Result<Arena> scratch = Arena::create((*projector)->workspace_bytes(257));
  ASSERT_TRUE(scratch.is_ok());
  TensorRegistry registry;
  const OpContext ctx{.kernels = &backend->kernels,
                      .stream = {&pool, nullptr},
                      .scratch = &*scratch,
                      .registry = &registry,
                      .matmul = MatmulMode::kF32};
  const Status status = (*projector)
                            ->forward(ctx, View::dense(input.data(), DType::kF32, Shape{257, 1024}),
                                      View::dense(output.data(), DType::kF32, Shape{257, 512}));
  ASSERT_TRUE(status.is_ok()) << status.message();

  expect_rows(golden, output);
}

}  // namespace
}  // namespace triptych::parity
