#include "zlink/testing/remote_store.hpp"

#include <utility>

namespace zlink::testing {

namespace {

steady_duration pick_delay(store_path& path) {
  const auto most = static_cast<std::uint64_t>(path.max_delay.count());
  return steady_duration{static_cast<steady_duration::rep>(most == 0 ? 0 : path.world.random() % (most + 1))};
}

store_failure cut_off() { return {store_failure_class::unclear, "this host is cut off from its store"}; }

/// `run(done)` is the operation at the store.
template <class T, class Run>
void travel(const std::shared_ptr<store_path>& path, Run run, store_completion<T> done) {
  path->world.deliver_after(pick_delay(*path), [path, run = std::move(run), done = std::move(done)]() mutable {
    if (path->cut) {
      done(cut_off());
      return;
    }
    run([path, done = std::move(done)](store_outcome<T> outcome) mutable {
      auto& world = path->world;
      const auto delay = pick_delay(*path);
      world.deliver_after(delay, [path, done = std::move(done), outcome = std::move(outcome)]() mutable {
        done(path->cut ? store_outcome<T>{cut_off()} : std::move(outcome));
      });
    });
  });
}

class remote_location_store final : public location_store {
public:
  remote_location_store(std::shared_ptr<location_store> real, std::shared_ptr<store_path> path)
    : real_(std::move(real)), path_(std::move(path)) {}

  void read(std::string key, store_completion<store_read_result> done) override {
    check_store_key(key);
    travel<store_read_result>(
      path_, [real = real_, key = std::move(key)](auto then) mutable { real->read(std::move(key), std::move(then)); },
      std::move(done));
  }
  void write(store_batch batch, store_completion<store_write_result> done) override {
    check_store_batch(batch);
    travel<store_write_result>(
      path_,
      [real = real_, batch = std::move(batch)](auto then) mutable { real->write(std::move(batch), std::move(then)); },
      std::move(done));
  }
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            store_completion<store_scan_result> done) override {
    check_store_scan(prefix, cursor, limit);
    travel<store_scan_result>(
      path_,
      [real = real_, prefix = std::move(prefix), cursor = std::move(cursor), limit](auto then) mutable {
        real->scan(std::move(prefix), std::move(cursor), limit, std::move(then));
      },
      std::move(done));
  }
  bool process_local() const noexcept override { return real_->process_local(); }

private:
  std::shared_ptr<location_store> real_;
  std::shared_ptr<store_path> path_;
};

class remote_relocation_store final : public relocation_store {
public:
  remote_relocation_store(std::shared_ptr<relocation_store> real, std::shared_ptr<store_path> path)
    : real_(std::move(real)), path_(std::move(path)) {}

  void put(std::string reference, store_bytes bytes, std::chrono::milliseconds retention,
           store_completion<blob_put_result> done) override {
    check_blob_put(reference, bytes, retention);
    travel<blob_put_result>(
      path_,
      [real = real_, reference = std::move(reference), bytes = std::move(bytes), retention](auto then) mutable {
        real->put(std::move(reference), std::move(bytes), retention, std::move(then));
      },
      std::move(done));
  }
  void read_blob(std::string reference, store_completion<std::optional<blob_value>> done) override {
    check_blob_reference(reference);
    travel<std::optional<blob_value>>(
      path_,
      [real = real_, reference = std::move(reference)](auto then) mutable {
        real->read_blob(std::move(reference), std::move(then));
      },
      std::move(done));
  }
  void renew(std::string reference, std::chrono::milliseconds retention, store_completion<bool> done) override {
    check_blob_reference(reference);
    check_blob_retention(retention);
    travel<bool>(
      path_,
      [real = real_, reference = std::move(reference), retention](auto then) mutable {
        real->renew(std::move(reference), retention, std::move(then));
      },
      std::move(done));
  }
  void erase(std::string reference, store_completion<std::monostate> done) override {
    check_blob_reference(reference);
    travel<std::monostate>(
      path_,
      [real = real_, reference = std::move(reference)](auto then) mutable {
        real->erase(std::move(reference), std::move(then));
      },
      std::move(done));
  }

private:
  std::shared_ptr<relocation_store> real_;
  std::shared_ptr<store_path> path_;
};

} // namespace

std::shared_ptr<location_store> make_remote(std::shared_ptr<location_store> real, std::shared_ptr<store_path> path) {
  return std::make_shared<remote_location_store>(std::move(real), std::move(path));
}

std::shared_ptr<relocation_store> make_remote(std::shared_ptr<relocation_store> real,
                                              std::shared_ptr<store_path> path) {
  return std::make_shared<remote_relocation_store>(std::move(real), std::move(path));
}

} // namespace zlink::testing
