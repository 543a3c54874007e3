"""What the checks know about this repository: layers, third parties, exceptions and limits.

A change of the house's shape is made here and in docs/architecture.md in the same commit.
"""

# --------------------------------------------------------------------------------------------------
# Layers. A module is a folder under src/, named by the longest entry that a file's path starts with.
# It may include its own headers and those of the modules named here, and nothing else. An entry that
# ends in .h allows that header alone.

_HOUSE = ["base", "core", "observe", "request"]
_PARTS = [*_HOUSE, "ops", "weights", "text", "media"]

LAYERS = {
    # 0
    "base": [],
    # 1
    "core": ["base"],
    "observe": ["base", "core"],
    "request": ["base", "core"],
    # 2
    "ops": _HOUSE,
    "weights": _HOUSE,
    "text": _HOUSE,
    "media": _HOUSE,
    "media/sandbox": ["media", *_HOUSE],
    # 3: backends never see each other
    "backends": ["ops", *_HOUSE],
    "backends/cpu": ["backends", "ops", *_HOUSE],
    "backends/cuda": ["backends", "ops", *_HOUSE],
    "cache": ["ops", "text/blake3.h", *_HOUSE],  # docs/decisions/cache-hashes.md
    "compression": ["ops", *_HOUSE],
    # 4
    "models": ["ops", "weights", "media/image/recipe.h", *_HOUSE],
    # 5
    "prep": ["request", "text", "media", "media/sandbox/sandbox.h", "weights", "models/spec.h", "models/registry.h",
             *_HOUSE],
    "sched": ["request", "cache", "compression", "models/spec.h", *_HOUSE],
    # 6: the engine takes prepared requests, so it sees neither prep nor text nor media
    "engine": ["ops", "weights", "backends", "cache", "compression", "models", "sched", *_HOUSE],
    # 7
    "server": ["prep", "text", "engine/engine.h", "engine/multimodal_engine.h",
               "backends/backend.h", "backends/backend_list.h", *_HOUSE],
    "cli": ["server/access.h", "server/service.h", "server/http/http_server.h", "server/http/test_client.h",
            "server/openai/error.h", "prep", "text", "media/sandbox/sandbox.h", "engine/engine.h",
            "engine/multimodal_engine.h",
            "backends/backend.h", "backends/backend_list.h", "weights/checkpoint.h", *_HOUSE],
}

# Folders outside src/ that a test beside the code may include from.
TEST_FOLDERS = ["ref", "tiny", "parity"]

# Headers that stay inside their module because they hold a third party's types; value: the module.
PRIVATE_HEADERS = {
    "text/ffi.h": "text",
    "media/image/jpeg_source.h": "media",
    "server/http/connection.h": "server",
}

# --------------------------------------------------------------------------------------------------
# Third parties: the start of an included name -> where that include may stand. "@cc" is any .cc file
# of the project, everything else the start of a path.

THIRD_PARTIES = {
    "fmt/": ["@cc"],
    "gtest/": ["@test"],
    "gmock/": ["@test"],
    "nlohmann/": ["src/base/json.cc"],
    "spdlog/": ["src/base/log.cc"],
    "CLI/": ["src/cli/main.cc"],
    "boost/": ["src/server/http/http_server.cc", "src/server/http/connection."],
    "curl/": ["src/server/remote/http_get.cc"],
    "openssl/": ["src/server/http/test_tls.h"],
    "hwy/": ["src/backends/cpu/", "src/media/"],
    "immintrin.h": ["src/backends/cpu/"],
    "cpuid.h": ["src/backends/cpu/"],
    "jpeglib.h": ["src/media/image/", "bench/sandbox/"],
    "jerror.h": ["src/media/image/"],
    "png.h": ["src/media/image/"],
    "webp/": ["src/media/image/"],
    "zlib.h": ["src/media/image/test_pixels.h", "bench/engine/"],
    "gif_lib.h": ["src/media/image/"],
    "triptych_text.h": ["src/text/ffi.h"],
}

# Operating system headers, allowed in any file.
SYSTEM_HEADERS = (
    "sys/", "linux/", "asm/", "arpa/", "net/", "netinet/", "dlfcn.h", "dirent.h", "fcntl.h", "malloc.h",
    "poll.h", "pthread.h", "sched.h", "signal.h", "spawn.h", "termios.h", "unistd.h",
    "sanitizer/",
)

# Types of third parties that must not be named in a header (private headers above excepted).
FOREIGN_TYPES = (
    r"\b(?:nlohmann|fmt|spdlog|boost|grpc|google::protobuf|CLI|testing)::\w"
    r"|\b(?:jpeg_(?:de)?compress_struct|png_structp|png_infop|GifFileType|WebPDecoderConfig)\b"
    r"|\bcuda(?:Stream|Event|Graph|Error)\w*_t\b|\bcublas\w*_t\b|\bnccl\w+_t\b|\bcudnn\w*_t\b"
)

# --------------------------------------------------------------------------------------------------
# Names of models: code outside models/ and tests is named by role. A path here may say them, with
# the reason why.

MODEL_NAMES = (
    r"(?:llava|qwen|siglip|mistral|mixtral|llama|smolvlm|smollm|gemma|pixtral|internvl|internlm|idefics"
    r"|whisper|deepseek|minicpm|molmo)(?![a-z])"
)
# "clip" is also an English word: only its spellings as a model's name count.
MODEL_NAMES_EXACT = r"\bCLIP(?![a-z])|\bCLIP[A-Z]\w+|\bClip(?:Vision|Image|Config)\w*|[\"_]clip_vision|\"clip\""

MODEL_NAME_EXCEPTIONS = {
    "src/models/": "where models live",
    "src/weights/": "checkpoint formats, name maps and config defaults are keyed by model type",
    "src/text/gguf_tokenizer": "pre-tokenizers are named by model in GGUF metadata",
    "src/media/image/recipe.cc": "processor classes are named by model in preprocessor_config.json",
}

# --------------------------------------------------------------------------------------------------
# Other rules.

# Where the environment may be read.
GETENV_FILES = ["src/base/settings.cc"]

NAMELESS_FOLDERS = ["utils", "util", "common", "misc", "helpers", "helper", "shared", "lib"]

# Paths of one machine and addresses of package registries.
PLACES = (
    r"(?<![\w/.])/(?:work|opt/hf|tmp/boot|home/\w+|root)(?:/|\b)"
    r"|\bpypi\.org|pythonhosted\.org|\bcrates\.io\b|registry\.npmjs\.org|\bdeb\.debian\.org"
    r"|proxy\.golang\.org|repo1?\.maven"
)
PLACE_EXCEPTIONS = {
    "rust/text_ffi/Cargo.lock": "cargo writes the registry's name into it",
    "tools/lint/": "the rules themselves",
}

# Not looked at: generated, binary or data.
SKIPPED = ["build/", "models/", "tests/eval/", "tests/parity/goldens/", "tests/fuzz/corpus/", ".git/", ".cache/",
           "rust/text_ffi/target/", "web/node_modules/"]

# Limits of the house, reported and never a failure.
MAX_LINES = {".cc": 400, ".h": 250}
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
