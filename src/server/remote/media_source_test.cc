#include "server/remote/media_source.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include "server/http/http_server.h"
#include "server/remote/http_get.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

bool is_public(const std::string& text) {
  sockaddr_storage storage{};
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
  } else {
    EXPECT_EQ(::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr), 1) << text;
    v6->sin6_family = AF_INET6;
  }
  return is_public_address(*reinterpret_cast<const sockaddr*>(&storage));
}

TEST(Address, OnlyThePublicInternetIsPublic) {
  for (const char* text :
       {"8.8.8.8", "1.1.1.1", "93.184.216.34", "172.15.255.255", "172.32.0.0", "100.63.255.255",
        "100.128.0.0", "223.255.255.255", "2606:2800:220:1:248:1893:25c8:1946",
        "2001:4860:4860::8888", "2a00:1450::1", "2002:0808:0808::1"}) {
    EXPECT_TRUE(is_public(text)) << text;
  }
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.0.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.1",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::ffff:127.0.0.1",
                           "::ffff:8.8.8.8",
                           "::7f00:1",
                           "64:ff9b::7f00:1",
                           "64:ff9b::808:808",
                           "100::1",
                           "fc00::1",
                           "fd12::1",
                           "fe80::1",
                           "fec0::1",
                           "ff02::1",
                           "2001::1",
                           "2001:2::1",
                           "2001:10::1",
                           "2001:20::1",
                           "2001:db8::1",
                           "2002:7f00:1::1",
                           "2002:a00:1::1",
                           "2002:c0a8:1::1",
                           "3fff::1"}) {
    EXPECT_FALSE(is_public(text)) << text;
  }
}

bool any(const sockaddr&) { return true; }

/// A server at 127.0.0.1 that is fetched from.
class Remote : public testing::Test {
 protected:
  void SetUp() override {
    http::Server::Callbacks callbacks{
        .handler =
            [this](http::Request request, std::shared_ptr<http::Exchange> exchange) {
              ++n_requests_;
              if (request.path == "/slow") {
                slow_ = std::move(exchange);
              } else if (request.path == "/moved") {
                exchange->respond({.status = 302,
                                   .headers = {{"Location", "http://127.0.0.1/secret"}},
                                   .body = {}});
              } else if (request.path == "/missing") {
                exchange->respond({.status = 404, .headers = {}, .body = "no"});
              } else {
                exchange->respond({.headers = {}, .body = std::string(1000, 'p')});
              }
            },
        .refusal =
            [](int status, std::string_view) {
              return http::Response{.status = status, .headers = {}, .body = {}};
            },
        .admission = nullptr};
    server_ = http::Server::start({.port = 0, .unix_socket = {}, .tls = {}}, {}, callbacks).value();
  }
  Result<std::string> get(const std::string& target, uint64_t max_bytes = 1000,
                          bool (*allow)(const sockaddr&) = any) {
    return http_get(
        {.host = "127.0.0.1", .port = server_->port(), .target = target},
        {.max_bytes = max_bytes, .time = std::chrono::milliseconds(300), .allow = allow});
  }

  std::atomic<int> n_requests_ = 0;
  std::shared_ptr<http::Exchange> slow_;
  std::unique_ptr<http::Server> server_;
};

TEST_F(Remote, GetsABody) {
  const auto body = get("/a.png?b");
  ASSERT_TRUE(body.is_ok()) << body.status().message();
  EXPECT_EQ(*body, std::string(1000, 'p'));
}

TEST_F(Remote, BoundsSizeAndTime) {
  EXPECT_EQ(get("/a", 999).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(get("/slow").status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(Remote, FollowsNothing) {
  EXPECT_THAT(get("/moved").status().message(), HasSubstr("redirects are not followed"));
  EXPECT_THAT(get("/missing").status().message(), HasSubstr("404"));
  EXPECT_EQ(n_requests_, 2);
}

// Whatever name or number leads to it: an address that is not public is never connected to.
TEST_F(Remote, ConnectsToPublicAddressesAlone) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto body = http_get({.host = host, .port = server_->port(), .target = "/"},
                               {.max_bytes = 1000, .time = std::chrono::milliseconds(300)});
    EXPECT_EQ(body.status().code(), StatusCode::kPermissionDenied) << body.status().message();
  }
  EXPECT_EQ(n_requests_, 0);
}

std::unique_ptr<MediaSource> source_of(MediaSources sources) {
  auto made = MediaSource::make(std::move(sources));
  EXPECT_TRUE(made.is_ok()) << made.status().message();
  return std::move(*made);
}

/// What fetching these gives.
Result<std::vector<std::string>> fetched(MediaSource& source, std::vector<std::string> names) {
  std::vector<std::string> labels(names.size(), "label");
  std::promise<Result<std::vector<std::string>>> promise;
  const Status status = source.fetch(std::move(names), labels,
                                     [&](auto result) { promise.set_value(std::move(result)); });
  EXPECT_TRUE(status.is_ok()) << status.message();
  return promise.get_future().get();
}

TEST(MediaSource, TakesListedHostsAlone) {
  const auto source = source_of({.hosts = {"example.org", "*.example.com"}, .folders = {}});
  EXPECT_TRUE(source->check("https://example.org/a.png").is_ok());
  EXPECT_TRUE(source->check("http://cdn.example.com/a.png").is_ok());
  for (const char* name : {"https://example.net/", "https://sub.example.org/", "http://127.0.0.1/",
                           "http://169.254.169.254/latest/meta-data", "file:///etc/hostname"}) {
    EXPECT_EQ(source->check(name).code(), StatusCode::kPermissionDenied) << name;
  }
  EXPECT_EQ(source->check("https://user@example.org/").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(source_of({})->check("https://example.org/").code(), StatusCode::kPermissionDenied);
}

// A listed name may lead to this machine: the address decides.
TEST(MediaSource, AListedHostWithAPrivateAddressIsRefused) {
  const auto source = source_of({.hosts = {"localhost", "127.0.0.1"}, .folders = {}});
  for (const char* name : {"http://localhost/", "http://127.0.0.1/"}) {
    const auto bytes = fetched(*source, {name});
    EXPECT_EQ(bytes.status().code(), StatusCode::kPermissionDenied) << bytes.status().message();
    EXPECT_THAT(bytes.status().message(), testing::StartsWith("label: "));
  }
}

class Folders : public testing::Test {
 protected:
  void SetUp() override {
    base_ = fs::path(testing::TempDir()) /
            ("media_source_" +
             std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(base_);
    fs::create_directories(base_ / "open" / "below");
    fs::create_directories(base_ / "open_not");
    write("open/a.png", "aaa");
    write("open/below/b.png", "bb");
    write("open_not/c.png", "secret");
    fs::create_symlink(base_ / "open_not" / "c.png", base_ / "open" / "link.png");
    fs::create_symlink(base_ / "open_not", base_ / "open" / "folder_link");
    fs::create_symlink(base_ / "open" / "a.png", base_ / "open_not" / "inward.png");
    fs::create_symlink(base_ / "open", base_ / "alias");
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(base_ / name) << text;
  }
  std::string name(const std::string& path) const { return "file://" + (base_ / path).string(); }

  fs::path base_;
};

TEST_F(Folders, FilesBelowAreRead) {
  const auto source = source_of({.hosts = {}, .folders = {(base_ / "alias").string()}});
  const auto bytes = fetched(*source, {name("open/a.png"), name("alias/below/b.png"),
                                       name("open/below/../a.png"), name("open_not/inward.png")});
  ASSERT_TRUE(bytes.is_ok()) << bytes.status().message();
  EXPECT_THAT(*bytes, testing::ElementsAre("aaa", "bb", "aaa", "aaa"));
}

TEST_F(Folders, NothingElseIs) {
  const auto source = source_of({.hosts = {}, .folders = {(base_ / "open").string()}});
  std::string first;
  for (const std::string& path :
       {name("open_not/c.png"), name("open/../open_not/c.png"), name("open/link.png"),
        name("open/folder_link/c.png"), name("open/missing.png"), name("open/below"), name("open"),
        std::string("file:///etc/hostname"), std::string("file:///proc/self/mem"),
        std::string("file:///dev/zero")}) {
    const auto bytes = fetched(*source, {path});
    EXPECT_EQ(bytes.status().code(), StatusCode::kPermissionDenied) << path;
    if (first.empty()) first = bytes.status().message();
    EXPECT_EQ(bytes.status().message(), first) << "the answer tells nothing of what is there";
  }
  for (const std::string bad : {"file://host/a", "file://", "file:///a%2e%2e/b", "file:///a?b"}) {
    EXPECT_EQ(source->check(bad).code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST_F(Folders, AllMediaOfARequestShareABound) {
  const auto source =
      source_of({.hosts = {}, .folders = {(base_ / "open").string()}, .max_bytes = 5});
  EXPECT_TRUE(fetched(*source, {name("open/a.png"), name("open/below/b.png")}).is_ok());
  EXPECT_EQ(fetched(*source, {name("open/a.png"), name("open/a.png")}).status().code(),
            StatusCode::kOutOfRange);
}

TEST_F(Folders, MustBeThere) {
  EXPECT_EQ(MediaSource::make({.hosts = {}, .folders = {"/no/such/folder"}}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(Folders, TooManyThatWaitAreRefusedAndTheEndAnswersThem) {
  std::promise<void> go;
  const std::shared_future<void> may_go = go.get_future().share();
  std::atomic<int> n_done = 0;
  std::atomic<int> n_failed = 0;
  {
    const auto source = source_of(
        {.hosts = {}, .folders = {(base_ / "open").string()}, .threads = 1, .max_waiting = 2});
    const auto ask = [&] {
      return source->fetch({name("open/a.png")}, {"label"}, [&, may_go](auto result) {
        may_go.wait();
        ++n_done;
        if (!result.is_ok()) ++n_failed;
      });
    };
    ASSERT_TRUE(ask().is_ok());
    int taken = 1;
    Status refused;
    for (int i = 0; i < 100 && refused.is_ok(); ++i) {
      refused = ask();
      if (refused.is_ok()) ++taken;
    }
    EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
    EXPECT_LE(taken, 3);
    go.set_value();
  }
  EXPECT_GE(n_done, 2);
  EXPECT_LE(n_failed, 2);
}

}  // namespace
}  // namespace triptych
