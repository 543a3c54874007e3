// Where a server listens: unix sockets, and TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "server/http/http_server.h"
#include "server/http/test_tls.h"

namespace triptych::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

void echo(Request request, std::shared_ptr<Exchange> exchange) {
  exchange->respond({.content_type = "text/plain",
                     .headers = {},
                     .body = request.path + " from " + request.client + " " + request.body});
}

Result<std::unique_ptr<Server>> start(const ListenOptions& listen, Handler handler = echo) {
  return Server::start(listen, {},
                       {.handler = std::move(handler),
                        .refusal =
                            [](int status, std::string_view reason) {
                              return Response{.status = status,
                                              .content_type = "text/plain",
                                              .headers = {},
                                              .body = std::string(reason)};
                            },
                        .admission = nullptr});
}

class UnixSocket : public testing::Test {
 protected:
  const std::string path_ = testing::TempDir() + "triptych_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
  ListenOptions listen_{.unix_socket = path_, .tls = {}};
};

TEST_F(UnixSocket, AnswersAndLeavesNothingBehind) {
  {
    const auto server = start(listen_);
    ASSERT_TRUE(server.is_ok()) << server.status().message();
    EXPECT_EQ((*server)->port(), 0);
    TestClient client(path_);
    client.send(get("/a"));
    EXPECT_THAT(client.receive_all(), EndsWith("/a from unix "));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocket, TakesThePlaceOfAServerThatIsGone) {
  {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ::close(socket);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(start(listen_).is_ok());
}

TEST_F(UnixSocket, LeavesOthersAlone) {
  const auto server = start(listen_);
  ASSERT_TRUE(server.is_ok());
  const auto second = start(listen_);
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr("another server does"));
  TestClient client(path_);
  client.send(get("/a"));
  EXPECT_THAT(client.receive_all(), HasSubstr("/a from"));

  const std::string file = path_ + "_file";
  std::ofstream(file) << "something";
  const auto third = start({.unix_socket = file, .tls = {}});
  EXPECT_EQ(third.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(start({.unix_socket = std::string(200, 'a'), .tls = {}}).status().code(),
            StatusCode::kInvalidArgument);
}

class Tls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    own_ = std::make_unique<TestCertificate>(testing::TempDir() + "triptych_tls_server");
    client_ = std::make_unique<TestCertificate>(testing::TempDir() + "triptych_tls_client");
  }
  static ListenOptions listen(const std::string& client_ca = "") {
    return {
        .port = 0, .unix_socket = {}, .tls = {own_->certificate_file, own_->key_file, client_ca}};
  }

  static inline std::unique_ptr<TestCertificate> own_;
  static inline std::unique_ptr<TestCertificate> client_;
};

TEST_F(Tls, AnswersShortAndLongBodies) {
  const auto server = start(listen());
  ASSERT_TRUE(server.is_ok()) << server.status().message();
  for (const size_t n : {size_t{4}, size_t{300'000}}) {
    TestTlsClient client((*server)->port(), *own_);
    ASSERT_TRUE(client.connected());
    client.send(post("/a", std::string(n, 'x')));
    const std::string answer = client.receive_all();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
    EXPECT_THAT(answer, EndsWith("/a from 127.0.0.1 " + std::string(n, 'x')));
  }
}

TEST_F(Tls, StreamsAndNoticesAClientThatLeaves) {
  std::promise<void> gone;
  std::shared_ptr<Exchange> kept;
  const auto server = start(listen(), [&](Request request, std::shared_ptr<Exchange> exchange) {
    if (request.path == "/stream") {
      exchange->start_stream({.content_type = "text/plain", .headers = {}, .body = {}});
      exchange->write("one ");
      exchange->write("two");
      return exchange->finish();
    }
    exchange->on_gone([&] { gone.set_value(); });
    kept = std::move(exchange);
  });
  ASSERT_TRUE(server.is_ok()) << server.status().message();
  TestTlsClient reader((*server)->port(), *own_);
  reader.send(get("/stream"));
  EXPECT_THAT(reader.receive_all(), HasSubstr("one "));
  TestTlsClient client((*server)->port(), *own_);
  client.send(get("/wait"));
  client.close();
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST_F(Tls, PlainRequestsGetNoAnswer) {
  const auto server = start(listen());
  ASSERT_TRUE(server.is_ok());
  TestClient client((*server)->port());
  client.send(get("/a"));
  EXPECT_THAT(client.receive_all(), testing::Not(HasSubstr("/a from")));
}

TEST_F(Tls, AsksForTheClientsCertificateWhereItIsTold) {
  const auto server = start(listen(client_->certificate_file));
  ASSERT_TRUE(server.is_ok()) << server.status().message();
  TestTlsClient known((*server)->port(), *own_, client_.get());
  known.send(get("/a"));
  EXPECT_THAT(known.receive_all(), HasSubstr("/a from"));
  TestTlsClient stranger((*server)->port(), *own_);
  stranger.send(get("/a"));
  EXPECT_EQ(stranger.receive_all(), "");
}

TEST_F(Tls, NamesTheFileThatCannotBeUsed) {
  ListenOptions options = listen();
  options.tls.certificate = "missing.crt";
  EXPECT_THAT(start(options).status().message(), HasSubstr("missing.crt"));
  options = listen();
  options.tls.private_key = client_->key_file;
  EXPECT_THAT(start(options).status().message(), HasSubstr(client_->key_file));
  EXPECT_THAT(start(listen("missing.crt")).status().message(), HasSubstr("missing.crt"));
}

}  // namespace
}  // namespace triptych::http
