package adminapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	api "github.com/brctl/brctl/lab/internal/adminapi"
)

func TestALargeIntegerIsPrintedAsAnInteger(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent := []api.Settings{{Values: map[string]any{"keys": float64(1006632), "share": 0.5}}}
		if err := json.NewEncoder(w).Encode(sent); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client := api.Client{Address: strings.TrimPrefix(server.URL, "http://")}
	var got []api.Settings
	if err := client.Get(t.Context(), api.PathSettings, &got); err != nil {
		t.Fatal(err)
	}
	for item, want := range map[string]string{"keys": "1006632", "share": "0.5"} {
		if text := fmt.Sprint(got[0].Values[item]); text != want {
			t.Errorf("%s: got %s, want %s", item, text, want)
		}
	}
}
