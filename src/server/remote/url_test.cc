#include "server/remote/url.h"

#include <gtest/gtest.h>

namespace triptych {
namespace {

TEST(RemoteUrl, ReadsWhatPeopleWrite) {
  const auto plain = parse_remote_url("HTTPS://Images.Example.ORG/a/b%20c.png?size=large&x=1");
  ASSERT_TRUE(plain.is_ok()) << plain.status().message();
  EXPECT_TRUE(plain->tls);
  EXPECT_EQ(plain->host, "images.example.org");
  EXPECT_EQ(plain->port, 443);
  EXPECT_EQ(plain->target, "/a/b%20c.png?size=large&x=1");
  EXPECT_EQ(plain->text(), "https://images.example.org:443/a/b%20c.png?size=large&x=1");
  EXPECT_EQ(parse_remote_url("http://example.org")->target, "/");
  EXPECT_EQ(parse_remote_url("http://example.org?q")->target, "/?q");
  EXPECT_EQ(parse_remote_url("http://example.org:80/")->port, 80);
  EXPECT_EQ(parse_remote_url("http://8.8.8.8/a")->host, "8.8.8.8");
  EXPECT_EQ(parse_remote_url("http://xn--bcher-kva.example/")->host, "xn--bcher-kva.example");
}

// Field case F20 and what parsers disagree on: each is refused before anything is looked up.
TEST(RemoteUrl, RefusesWhatCanBeReadInTwoWays) {
  const std::string kHostile[] = {"",
                                  "http",
                                  "http:",
                                  "http:/",
                                  "http://",
                                  "http:///",
                                  "//example.org/",
                                  "example.org/a.png",
                                  "ftp://example.org/",
                                  "gopher://example.org/",
                                  "file:///etc/passwd",
                                  "dict://example.org/",
                                  "data:image/png;base64,AA",
                                  "javascript:alert(1)",
                                  "unix:///run/socket",
                                  "http://user@example.org/",
                                  "http://user:pass@example.org/",
                                  "http://a@b@example.org/",
                                  "http://example.org@127.0.0.1/",
                                  "http://127.0.0.1@example.org/",
                                  "http://example.org\\@127.0.0.1/",
                                  "http://127.0.0.1\\@example.org/",
                                  "http://example.org\\.evil.example/",
                                  "http:\\\\example.org/",
                                  "http://example.org/\\..",
                                  "http://example.org#@127.0.0.1/",
                                  "http://example.org/#fragment",
                                  "http://example.org/a b",
                                  "http://example.org/\r\nHost: x",
                                  "http://example.org/\t",
                                  " http://example.org/",
                                  "http://example.org/\n",
                                  std::string("http://example.org/\0a", 21),
                                  "http://ex\u00e4mple.org/",
                                  "http://\u2460.example.org/",
                                  "http://example\u3002org/",
                                  "http://exam%70le.org/",
                                  "http://%31%32%37.0.0.1/",
                                  "http://example.org:/",
                                  "http://example.org:8080/",
                                  "http://example.org:443/",
                                  "https://example.org:80/",
                                  "http://example.org:080/",
                                  "http://example.org:80:80/",
                                  "http://example.org:+80/",
                                  "http://[::1]/",
                                  "http://[::ffff:127.0.0.1]/",
                                  "http://[fe80::1%25eth0]/",
                                  "http://0x7f000001/",
                                  "http://0x7f.0.0.1/",
                                  "http://0177.0.0.1/",
                                  "http://017700000001/",
                                  "http://2130706433/",
                                  "http://127.1/",
                                  "http://127.0.1/",
                                  "http://127.0.0.01/",
                                  "http://1.2.3.4.5/",
                                  "http://256.0.0.1/",
                                  "http://1.2.3/",
                                  "http://0/",
                                  "http://127.0.0.1./",
                                  "http://example.org./",
                                  "http://.example.org/",
                                  "http://example..org/",
                                  "http://-a.org/",
                                  "http://a-.org/",
                                  "http://a_b.org/",
                                  "http://*/",
                                  "http://example.org,127.0.0.1/",
                                  "http://" + std::string(64, 'a') + ".org/",
                                  "http://example.org/" + std::string(5000, 'a')};
  for (const std::string& text : kHostile) {
    const auto url = parse_remote_url(text);
    EXPECT_EQ(url.status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(RemoteUrl, HostsAreListedWholeOrByWhatTheyEndIn) {
  EXPECT_TRUE(is_listed_host("example.org", "example.org"));
  EXPECT_FALSE(is_listed_host("a.example.org", "example.org"));
  EXPECT_TRUE(is_listed_host("a.example.org", "*.example.org"));
  EXPECT_TRUE(is_listed_host("a.b.example.org", "*.example.org"));
  EXPECT_FALSE(is_listed_host("example.org", "*.example.org"));
  EXPECT_FALSE(is_listed_host("evilexample.org", "*.example.org"));
  EXPECT_FALSE(is_listed_host("example.org.evil", "*.example.org"));
}

}  // namespace
}  // namespace triptych
