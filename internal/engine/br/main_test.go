package br_test

import (
	"testing"

	"github.com/brctl/brctl/internal/engine/br/brtest"
)

func TestMain(m *testing.M) { brtest.Main(m) }
