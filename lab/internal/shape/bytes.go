package shape

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/docker/go-units"
)

// Bytes is a size that reads and prints as "300GiB"; it is a flag value and a JSON string.
type Bytes int64

// MiB is the unit of every rate in the lab: "MB/s" means MiB per second here, as in the model's formulas.
const MiB Bytes = 1 << 20

// Set parses a size with a binary unit.
func (b *Bytes) Set(s string) error {
	n, err := units.RAMInBytes(s)
	if err != nil {
		return fmt.Errorf("parse size %q: %w", s, err)
	}
	*b = Bytes(n)
	return nil
}

// String prints the exact size in the largest binary unit that divides it.
func (b Bytes) String() string {
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for b != 0 && b%1024 == 0 && i < len(names)-1 {
		b /= 1024
		i++
	}
	return strconv.FormatInt(int64(b), 10) + names[i]
}

// Type names the value in help texts.
func (b *Bytes) Type() string { return "size" }

// MarshalJSON writes the size as text.
func (b Bytes) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }

// UnmarshalJSON reads the size from text.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("parse size: %w", err)
	}
	return b.Set(s)
}
