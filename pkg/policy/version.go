package policy

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a release number of TiDB, TiKV or br. Suffix keeps what followed
// the number ("6-g04e5e8cc8-dirty", "beta.2.pre") for display; it takes no part
// in comparisons, because a build's suffix says nothing about what it can do.
type Version struct {
	Major, Minor, Patch int
	Suffix              string
}

// ParseVersion reads "v8.5.0", "7.5.1", "v5.1.0-6-g04e5e8cc8-dirty". It refuses
// text without a full number, such as a development build's "nightly-dirty".
func ParseVersion(s string) (Version, error) {
	text := strings.TrimPrefix(strings.TrimSpace(s), "v")
	number, suffix := text, ""
	if end := strings.IndexAny(text, "-+"); end >= 0 {
		number, suffix = text[:end], text[end+1:]
	}
	parts := strings.Split(number, ".")
	if len(parts) != 3 {
		return Version{}, fmt.Errorf("version %q is not three numbers (want 8.5.0)", s)
	}
	var n [3]int
	for i, part := range parts {
		v, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return Version{}, fmt.Errorf("version %q is not three numbers (want 8.5.0)", s)
		}
		n[i] = int(v)
	}
	return Version{Major: n[0], Minor: n[1], Patch: n[2], Suffix: suffix}, nil
}

// Compare orders versions by their numbers: negative when v is older than w.
func (v Version) Compare(w Version) int {
	return cmp.Or(
		cmp.Compare(v.Major, w.Major),
		cmp.Compare(v.Minor, w.Minor),
		cmp.Compare(v.Patch, w.Patch),
	)
}

// AtLeast reports whether v is the given release or newer.
func (v Version) AtLeast(major, minor, patch int) bool {
	return v.Compare(Version{Major: major, Minor: minor, Patch: patch}) >= 0
}

func (v Version) String() string {
	text := fmt.Sprintf("v%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Suffix != "" {
		text += "-" + v.Suffix
	}
	return text
}
