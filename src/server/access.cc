#include "server/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/file.h"

namespace triptych {
namespace {

constexpr std::string_view kBearer = "bearer ";
constexpr std::string_view kHashKind = "blake3:";
constexpr std::string_view kBlanks = " \t\r";

/// Keys are random, so a fast hash is enough; the frame sets it apart from other uses.
Blake3Hash hash_of(std::string_view key) {
  Blake3Hasher hasher;
  hasher.update_framed("triptych api key");
  hasher.update_framed(key);
  return hasher.hash();
}

bool same(const Blake3Hash& a, const Blake3Hash& b) {
  uint8_t differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= a[i] ^ b[i];
  return differs == 0;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.front() != '#' && name.find_first_of(" \t\r\n") == name.npos;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::optional<uint8_t> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

std::optional<Blake3Hash> parse_hash(std::string_view text) {
  Blake3Hash out;
  if (!text.starts_with(kHashKind)) return std::nullopt;
  text.remove_prefix(kHashKind.size());
  if (text.size() != 2 * out.size()) return std::nullopt;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto high = digit_of(text[2 * i]);
    const auto low = digit_of(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    out[i] = static_cast<uint8_t>(*high << 4 | *low);
  }
  return out;
}

/// Words such as requests_per_min=60. The error is what is wrong with the first bad one.
Status read_limits(std::string_view text, KeyLimits& out) {
  const std::pair<std::string_view, int64_t KeyLimits::*> kNames[] = {
      {"requests_per_min", &KeyLimits::requests_per_min},
      {"tokens_per_min", &KeyLimits::tokens_per_min},
      {"media_bytes_per_min", &KeyLimits::media_bytes_per_min},
      {"requests_at_once", &KeyLimits::requests_at_once}};
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
    text.remove_prefix(word.size());
    const size_t equals = std::min(word.find('='), word.size());
    const auto* const name =
        std::find_if(std::begin(kNames), std::end(kNames),
                     [&](const auto& known) { return known.first == word.substr(0, equals); });
    const std::string_view digits = word.substr(std::min(equals + 1, word.size()));
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (name == std::end(kNames) || error != std::errc() || end != digits.end() || value < 1) {
      return invalid_argument(fmt::format(
          "\"{}\" is no limit; there are requests_per_min, tokens_per_min, media_bytes_per_min "
          "and requests_at_once, each with =NUMBER",
          word));
    }
    out.*(name->second) = value;
  }
  return Status::ok();
}

}  // namespace

Status AccessControl::load(std::string_view text, const std::string& source) {
  struct Line {
    std::string name;
    Blake3Hash hash;
    KeyLimits limits;
  };
  std::vector<Line> read;
  int64_t number = 0;
  for (const std::string_view whole_line : lines_of(text)) {
    ++number;
    const std::string_view line = trimmed(whole_line);
    if (line.empty() || line.front() == '#') continue;
    const size_t name_end = std::min(line.find_first_of(kBlanks), line.size());
    const std::string name(line.substr(0, name_end));
    const std::string_view rest = trimmed(line.substr(name_end));
    const size_t hash_end = std::min(rest.find_first_of(kBlanks), rest.size());
    const std::optional<Blake3Hash> hash = parse_hash(rest.substr(0, hash_end));
    if (!hash) {
      return invalid_argument(fmt::format(
          "{}:{}: expected a name and blake3:HASH, as `triptych key NAME` prints", source, number));
    }
    if (std::any_of(read.begin(), read.end(), [&](const Line& key) { return key.name == name; })) {
      return invalid_argument(
          fmt::format("{}:{}: there are two keys \"{}\"", source, number, name));
    }
    KeyLimits limits;
    const Status status = read_limits(rest.substr(hash_end), limits);
    if (!status.is_ok()) {
      return invalid_argument(fmt::format("{}:{}: {}", source, number, status.message()));
    }
    read.push_back({name, *hash, limits});
  }
  // Without a key anybody could ask, which nobody means by a key file.
  if (read.empty()) return invalid_argument(source + ": there is no key in it");
  const std::lock_guard lock(mutex_);
  keys_.clear();
  for (const Line& line : read) {
    keys_.push_back({caller_of(line.name), line.hash});
    keys_.back().caller.limits = line.limits;
  }
  return Status::ok();
}

void AccessControl::add(std::string name, std::string_view key) {
  const std::lock_guard lock(mutex_);
  keys_.push_back({caller_of(name), hash_of(key)});
}

Caller AccessControl::caller_of(const std::string& name) {
  const auto next = static_cast<uint32_t>(tenants_.size() + 1);
  return {.name = name, .tenant = tenants_.emplace(name, next).first->second};
}

bool AccessControl::is_open() const {
  const std::lock_guard lock(mutex_);
  return keys_.empty();
}

std::optional<Caller> AccessControl::identify(const http::Request& request) const {
  const std::string* value = request.header("Authorization");
  if (value == nullptr || value->size() <= kBearer.size()) return std::nullopt;
  const std::string_view scheme = std::string_view(*value).substr(0, kBearer.size());
  if (!http::equal_ignoring_case(scheme, kBearer)) return std::nullopt;
  const Blake3Hash hash = hash_of(trimmed(std::string_view(*value).substr(kBearer.size())));
  const std::lock_guard lock(mutex_);
  std::optional<Caller> found;
  for (const Key& key : keys_) {
    if (same(key.hash, hash)) found = key.caller;
  }
  return found;
}

Result<NewApiKey> new_api_key(const std::string& name) {
  if (!is_name(name)) {
    return invalid_argument(fmt::format(
        "\"{}\" is no name for a key: it must not be empty, hold blanks or begin with #", name));
  }
  std::array<uint8_t, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return internal_error("the system gave no random bytes");
  }
  NewApiKey out;
  out.key = "tt-" + to_hex(bytes);
  out.line = fmt::format("{} {}{}", name, kHashKind, to_hex(hash_of(out.key)));
  return out;
}

}  // namespace triptych
