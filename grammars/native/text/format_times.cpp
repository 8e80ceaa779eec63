// Dates, times and durations: RFC 3339.
#include "format_patterns.h"

namespace sglite::text {
namespace {

const std::string kFraction = R"((?:\.[0-9]+)?)";

std::string two(int number) {
    return {static_cast<char>('0' + number / 10), static_cast<char>('0' + number % 10)};
}

std::string digit(int number) { return {static_cast<char>('0' + number % 10)}; }

std::string alternatives(const std::vector<std::string>& parts) {
    std::string joined = "(?:";
    for (const std::string& part : parts) {
        if (joined.size() > 3) joined += '|';
        joined += part;
    }
    return joined + ")";
}

// A second 60 means 23:59 in UTC. With an offset `+oh:om` that is oh:om = hh:mm + 1 minute, with
// `-oh:om` it is oh:om = 23:59 - hh:mm. Each digit of `mm`, and `hh`, are told apart by a language
// of their own; all hold together. `day` precedes the time.
std::string leap_minute_ones(const std::string& day) {
    std::vector<std::string> parts;
    for (int ones = 0; ones < 10; ++ones) {
        parts.push_back(digit(ones) + ":60" + kFraction + R"((?:\+\d\d:\d)" + digit(ones + 1) +
                        R"(|-\d\d:\d)" + digit(9 - ones) + (ones == 9 ? "|[Zz])" : ")"));
    }
    return day + R"(\d\d:\d)" + alternatives(parts);
}

std::string leap_minute_tens(const std::string& day) {
    std::vector<std::string> parts;
    for (int tens = 0; tens < 6; ++tens) {
        const std::string minus = R"(\d|-\d\d:)" + digit(5 - tens) + R"(\d)";
        parts.push_back(digit(tens) + "[0-8]:60" + kFraction + R"((?:\+\d\d:)" + digit(tens) +
                        minus + ")");
        parts.push_back(digit(tens) + "9:60" + kFraction + R"((?:\+\d\d:)" + digit((tens + 1) % 6) +
                        minus + (tens == 5 ? "|[Zz])" : ")"));
    }
    return day + R"(\d\d:)" + alternatives(parts);
}

// With `+oh:om` the hour is that of the offset, or one less where om is 00.
std::string leap_hours(const std::string& day) {
    std::vector<std::string> parts;
    for (int hour = 0; hour < 24; ++hour) {
        parts.push_back(two(hour) + R"(:\d\d:60)" + kFraction + R"((?:\+(?:)" + two(hour) +
                        R"(:(?:0[1-9]|[1-5]\d)|)" + two((hour + 1) % 24) + ":00)|-" +
                        two(23 - hour) + R"(:\d\d)" + (hour == 23 ? "|[Zz])" : ")"));
    }
    return day + alternatives(parts);
}

const std::string kMinute = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
const std::string kOffset = R"((?:[Zz]|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9]))";
const std::string kTime = kMinute + ":[0-5][0-9]" + kFraction + kOffset;

// Times behind a date, of which `day` is the pattern and `any_day` one that is wider.
LangId times(Languages& languages, const std::string& day, const std::string& any_day) {
    const LangId plain = full(languages, day + kTime);
    const LangId leap = languages.both(
        {full(languages, day + kMinute + ":60" + kFraction + kOffset),
         full(languages, leap_minute_ones(any_day)), full(languages, leap_minute_tens(any_day)),
         full(languages, leap_hours(any_day))});
    return languages.either({plain, leap});
}

}  // namespace

const std::string& date_pattern() {
    static const std::string pattern = [] {
        const std::string year = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
        const std::string fourth = "(?:0[48]|[2468][048]|[13579][26])";
        const std::string leap_year = "(?:[0-9][0-9]" + fourth + "|" + fourth + "00)";
        return "(?:" + year +
               "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
               "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
               "|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
               leap_year + "-02-29)";
    }();
    return pattern;
}

LangId time_format(Languages& languages) { return times(languages, "", ""); }

LangId date_time_format(Languages& languages) {
    return times(languages, date_pattern() + "[Tt]", R"([\d\-]*[Tt])");
}

const std::string& duration_pattern() {
    static const std::string pattern = [] {
        const std::string time = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
        const std::string days = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
        return "P(?:" + days + "(?:" + time + ")?|" + time + "|[0-9]+W)";
    }();
    return pattern;
}

}  // namespace sglite::text
