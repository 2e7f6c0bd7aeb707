// Certificates for tests, made when they are needed and gone with the object.
#pragma once

#include "zlink/mesh_transport.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace zlink::test {

struct certificate_options {
  std::string names = "DNS:localhost,IP:127.0.0.1"; ///< subject alternative names; empty: none
  int valid_from_days = -1;                        ///< from now
  int valid_days = 2;
};

/// One authority, with a folder for what it signs.
class test_authority {
public:
  test_authority();
  ~test_authority();
  test_authority(const test_authority&) = delete;
  test_authority& operator=(const test_authority&) = delete;

  /// A key and a certificate for it, and this authority as the one to trust.
  mesh_tls issue(const std::string& name, const certificate_options& options = {});
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

private:
  struct parts;
  std::filesystem::path folder_;
  std::unique_ptr<parts> parts_;
  int issued_ = 0;
};

} // namespace zlink::test
