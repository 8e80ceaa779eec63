// Relative references to URIs (RFC 3986, section 5).
#include "uri.h"

#include <optional>

namespace sglite::json {
namespace {

using Part = std::optional<std::string_view>;

struct Uri {
    Part scheme, authority, query, fragment;
    std::string_view path;
};

bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

bool is_scheme(std::string_view text) {
    if (text.empty() || !is_letter(text[0])) return false;
    for (const char c : text) {
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_letter(c) && !is_digit && c != '+' && c != '-' && c != '.') return false;
    }
    return true;
}

// Cuts off what stands behind the first `mark`.
Part cut(std::string_view& text, char mark) {
    const size_t at = text.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view behind = text.substr(at + 1);
    text = text.substr(0, at);
    return behind;
}

Uri split(std::string_view text) {
    Uri uri;
    uri.fragment = cut(text, '#');
    uri.query = cut(text, '?');
    const size_t colon = text.find(':');
    if (colon != std::string_view::npos && is_scheme(text.substr(0, colon))) {
        uri.scheme = text.substr(0, colon);
        text.remove_prefix(colon + 1);
    }
    if (text.starts_with("//")) {
        const size_t slash = text.find('/', 2);
        uri.authority = text.substr(2, slash == std::string_view::npos ? slash : slash - 2);
        text = slash == std::string_view::npos ? std::string_view() : text.substr(slash);
    }
    uri.path = text;
    return uri;
}

// Section 5.2.4: "." and ".." among the segments are followed.
std::string without_dots(std::string_view path) {
    std::string out;
    const auto drop_last = [&] {
        const size_t slash = out.rfind('/');
        out.resize(slash == std::string::npos ? 0 : slash);
    };
    while (!path.empty()) {
        if (path.starts_with("../")) {
            path.remove_prefix(3);
        } else if (path.starts_with("./") || path.starts_with("/./")) {
            path.remove_prefix(2);
        } else if (path == "/.") {
            path = "/";
        } else if (path.starts_with("/../")) {
            path.remove_prefix(3);
            drop_last();
        } else if (path == "/..") {
            path = "/";
            drop_last();
        } else if (path == "." || path == "..") {
            path = {};
        } else {
            const size_t end = path.find('/', 1);
            out += path.substr(0, end);
            path = end == std::string_view::npos ? std::string_view() : path.substr(end);
        }
    }
    return out;
}

std::string merged(const Uri& base, std::string_view path) {
    if (base.authority && base.path.empty()) return "/" + std::string(path);
    const size_t slash = base.path.rfind('/');
    const size_t kept = slash == std::string_view::npos ? 0 : slash + 1;
    return std::string(base.path.substr(0, kept)) + std::string(path);
}

}  // namespace

std::string join(std::string_view base_text, std::string_view reference) {
    const Uri base = split(base_text), uri = split(reference);
    Part scheme = uri.scheme, authority = uri.authority, query = uri.query;
    std::string path;
    if (scheme || authority) {
        path = without_dots(uri.path);
    } else if (uri.path.empty()) {
        path = base.path;
        if (!query) query = base.query;
    } else {
        path = without_dots(uri.path.starts_with('/') ? std::string(uri.path)
                                                      : merged(base, uri.path));
    }
    if (!uri.scheme) {
        scheme = base.scheme;
        if (!uri.authority) authority = base.authority;
    }
    std::string out;
    if (scheme) out.append(*scheme) += ':';
    if (authority) (out += "//").append(*authority);
    out += path;
    if (query) (out += '?').append(*query);
    if (uri.fragment) (out += '#').append(*uri.fragment);
    return out;
}

std::string unquote(std::string_view text) {
    const auto hex = [](char c) {
        const char lower = static_cast<char>(c | 0x20);
        if (c >= '0' && c <= '9') return c - '0';
        return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    };
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 &&
            hex(text[i + 2]) >= 0) {
            out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace sglite::json
