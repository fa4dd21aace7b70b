package bed

import (
	"context"

	"golang.org/x/sync/errgroup"
)

func (b *Bed) startAdmin(context.Context, *errgroup.Group) error { return nil }
