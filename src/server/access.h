#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/http/http.h"
#include "text/blake3.h"

namespace triptych {

/// What a key may ask for. 0: as much as it likes.
struct KeyLimits {
  int64_t requests_per_min = 0;
  int64_t tokens_per_min = 0;  ///< of prompts, rows of media among them, and of answers
  int64_t media_bytes_per_min = 0;
  int64_t requests_at_once = 0;
};

/// Who asks. Tenants share no cache.
struct Caller {
  std::string name = {};  ///< of the key; empty where there are no keys
  uint32_t tenant = 0;    ///< the same for a name as long as the process runs
  KeyLimits limits = {};
};

/// The API keys of a server, of which it holds only hashes. A key file has a line a key: its name
/// and "blake3:" with the hash in hexadecimal digits (new_api_key makes both), then limits as
/// requests_per_min=60 (the names of KeyLimits); blank lines and those that begin with # say
/// nothing. Thread-safe.
class AccessControl {
 public:
  /// Takes the keys of a file's text in place of all others. kInvalidArgument names `source` and
  /// the line, or says that there is no key; nothing has changed then.
  Status load(std::string_view text, const std::string& source);
  /// Adds a key as it is, under a name.
  void add(std::string name, std::string_view key);

  /// Whether anybody may ask: there are no keys.
  bool is_open() const;
  /// Whose key a request brings ("Authorization: Bearer KEY"); nothing when it brings none of ours.
  /// Takes the same time whichever key it is, or is not.
  std::optional<Caller> identify(const http::Request& request) const;

 private:
  struct Key {
    Caller caller;
    Blake3Hash hash;
  };
  Caller caller_of(const std::string& name);

  mutable std::mutex mutex_;
  std::vector<Key> keys_;
  std::map<std::string, uint32_t> tenants_;  ///< also of keys that are gone
};

struct NewApiKey {
  std::string key;   ///< for the client, and nowhere else
  std::string line;  ///< for the key file
};
/// A key of 256 random bits. kInvalidArgument for a name with blanks, or none.
Result<NewApiKey> new_api_key(const std::string& name);

}  // namespace triptych
