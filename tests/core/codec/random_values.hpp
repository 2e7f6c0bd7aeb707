// Random values of every field type, the same for the same seed.
#pragma once

#include "zlink/codec/fields.hpp"

#include <cmath>
#include <iterator>
#include <limits>
#include <random>

namespace codec_test {

using generator = std::mt19937_64;

template <class T>
void randomise(generator& random, T& x);

template <class T>
T random_of(generator& random) {
  T x{};
  randomise(random, x);
  return x;
}

/// Small numbers and extremes as often as any others.
template <class T>
T random_integer(generator& random) {
  switch (random() % 4) {
    case 0: return static_cast<T>(random() % 100);
    case 1: return random() % 2 == 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
    default: return static_cast<T>(random() >> (random() % 64));
  }
}

template <class T, std::size_t I = 0>
void randomise_alternative(generator& random, std::size_t index, T& x) {
  if constexpr (I < std::variant_size_v<T>) {
    if (index == I)
      randomise(random, x.template emplace<I>());
    else
      randomise_alternative<T, I + 1>(random, index, x);
  }
}

template <class T>
void randomise(generator& random, T& x) {
  using namespace zlink::detail;
  if constexpr (std::is_same_v<T, bool>) {
    x = random() % 2 == 0;
  } else if constexpr (integer_field<T>) {
    x = random_integer<T>(random);
  } else if constexpr (float_field<T>) {
    x = static_cast<T>(
      std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -static_cast<int>(random() % 120)));
  } else if constexpr (enum_field<T>) {
    x = static_cast<T>(random_of<std::underlying_type_t<T>>(random));
  } else if constexpr (duration_field<T>) {
    x = T{random_of<typename T::rep>(random)};
  } else if constexpr (std::is_same_v<T, std::string>) {
    static const char* const parts[] = {
      "", "a", "\"\\/", "\n\t\x01", "\xc3\xa4", "\xf0\x9f\x98\x80", "long enough for the heap"};
    for (auto n = random() % 5; n-- > 0;)
      x += parts[random() % std::size(parts)];
    if (random() % 8 == 0)
      x.append(random() % 400, 'x'); // over the 127 bytes of a short length, over the writer's first 256
  } else if constexpr (object_reference<T>) {
    std::apply([&](const auto&... field) { (randomise(random, x.*field.member), ...); }, packet_fields<T>.items);
    x.object_generation = 1 + random() % zlink::generation_limit;
  } else if constexpr (optional_field<T>) {
    x.reset();
    if (random() % 2 == 0)
      randomise(random, x.emplace());
  } else if constexpr (array_field<T>) {
    for (auto& element : x)
      randomise(random, element);
  } else if constexpr (tuple_field<T>) {
    std::apply([&](auto&... part) { (randomise(random, part), ...); }, x);
  } else if constexpr (variant_field<T>) {
    randomise_alternative(random, random() % std::variant_size_v<T>, x);
  } else if constexpr (map_field<T>) {
    for (auto n = random() % 5; n-- > 0;)
      x[random_of<typename T::key_type>(random)] = random_of<typename T::mapped_type>(random);
  } else if constexpr (set_field<T>) {
    for (auto n = random() % 5; n-- > 0;)
      x.insert(random_of<typename T::value_type>(random));
  } else if constexpr (sequence_field<T>) {
    for (auto n = random() % 5; n-- > 0;)
      x.push_back(random_of<typename T::value_type>(random));
  } else if constexpr (has_fields<T>) {
    std::apply([&](const auto&... field) { (randomise(random, x.*field.member), ...); }, packet_fields<T>.items);
  }
}

} // namespace codec_test
