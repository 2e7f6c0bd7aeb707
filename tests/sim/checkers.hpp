// Promises that must hold in every run, whatever its order: fed from handlers and callers, asked at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zlink::test {

/// What was seen that must never be. Each checker is used by one thread only and outlives whoever feeds it.
class checker {
public:
  const std::vector<std::string>& broken() const noexcept { return broken_; }
  /// How often it was fed: a checker that saw nothing has proved nothing.
  std::size_t fed() const noexcept { return fed_; }

protected:
  checker() = default;
  void feed() noexcept { ++fed_; }
  void complain(std::string what) { broken_.push_back(std::move(what)); }

private:
  std::vector<std::string> broken_;
  std::size_t fed_ = 0;
};

/// two turns that hold the same gate are never active together.
class exclusive_gates : public checker {
public:
  /// The stretch during which a handler holds its gate; kept in the handler, across `submit` too.
  class [[nodiscard]] visit {
  public:
    visit(visit&& other) noexcept : home_(std::exchange(other.home_, nullptr)), gate_(std::move(other.gate_)) {}
    visit& operator=(visit&&) = delete;
    ~visit();

  private:
    friend class exclusive_gates;
    visit(exclusive_gates& home, std::string gate) : home_(&home), gate_(std::move(gate)) {}
    exclusive_gates* home_;
    std::string gate_;
  };
  visit enter(std::string gate);

private:
  std::map<std::string, int> inside_;
};

/// M-148, M-149: what one origin sends to one target runs there in the order of its numbers. Gaps are allowed.
class sender_order : public checker {
public:
  void ran(const std::string& sender, const std::string& target, std::uint64_t number);

private:
  std::map<std::pair<std::string, std::string>, std::uint64_t> last_;
};

/// M-130: every operation that began ends, once.
class single_end : public checker {
public:
  void began(const std::string& operation);
  void ended(const std::string& operation);
  /// Those that began and have not ended.
  std::vector<std::string> open() const;

private:
  std::map<std::string, int> ends_;
};

/// S-2: once another incarnation of an id has run something, the former one runs nothing any more.
class single_owner : public checker {
public:
  /// A turn of `id` began in `incarnation`, a name that no other activation of the id has.
  void ran(const std::string& id, const std::string& incarnation);
  /// Which incarnations ran, in order.
  std::vector<std::string> owners(const std::string& id) const;

private:
  std::map<std::string, std::vector<std::string>> owners_;
};

/// M-5: a message runs at most once.
class at_most_once : public checker {
public:
  void ran(const std::string& message);
  std::size_t different() const noexcept { return seen_.size(); }

private:
  std::set<std::string> seen_;
};

} // namespace zlink::test
