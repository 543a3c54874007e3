#pragma once

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>
#include <string>

#include "server/http/test_client.h"

namespace triptych::http {

/// A key and a certificate that it has signed itself, as files.
class TestCertificate {
 public:
  explicit TestCertificate(const std::string& path)
      : certificate_file(path + ".crt"), key_file(path + ".key") {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> x509(X509_new(), X509_free);
    X509_set_version(x509.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
    X509_set_pubkey(x509.get(), key.get());
    X509_NAME* name = X509_get_subject_name(x509.get());
    const auto* text = reinterpret_cast<const unsigned char*>("test");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
    X509_set_issuer_name(x509.get(), name);
    X509_sign(x509.get(), key.get(), EVP_sha256());
    std::FILE* file = std::fopen(certificate_file.c_str(), "w");
    PEM_write_X509(file, x509.get());
    std::fclose(file);
    file = std::fopen(key_file.c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }

  std::string certificate_file;
  std::string key_file;
};

/// A client that speaks TLS and trusts one certificate.
class TestTlsClient {
 public:
  /// With `own` it shows a certificate of its own.
  TestTlsClient(uint16_t port, const TestCertificate& trusted, const TestCertificate* own = nullptr)
      : client_(port),
        context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        ssl_(nullptr, SSL_free) {
    SSL_CTX_load_verify_locations(context_.get(), trusted.certificate_file.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (own != nullptr) {
      SSL_CTX_use_certificate_file(context_.get(), own->certificate_file.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), own->key_file.c_str(), SSL_FILETYPE_PEM);
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), client_.socket());
    connected_ = SSL_connect(ssl_.get()) == 1;
  }
  ~TestTlsClient() { ERR_clear_error(); }

  bool connected() const { return connected_; }
  void send(const std::string& bytes) {
    SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string receive_all() {
    std::string out;
    char bytes[4096];
    for (int n = 0; (n = SSL_read(ssl_.get(), bytes, sizeof(bytes))) > 0;) {
      out.append(bytes, static_cast<size_t>(n));
    }
    return out;
  }
  /// Says farewell and closes, as libraries do.
  void close() {
    SSL_shutdown(ssl_.get());
    client_.close();
  }

 private:
  TestClient client_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  bool connected_ = false;
};

}  // namespace triptych::http
