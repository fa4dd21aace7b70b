package tidbcfg

import (
	"context"
	"fmt"
	"strings"
)

// Grant is a privilege that brctl needs and what for.
type Grant struct {
	Privilege string // "CONFIG"
	On        string // "*.*"
	Why       string
}

// MissingGrantError lists the privileges that the account lacks.
type MissingGrantError struct {
	Account string // as it is quoted in a GRANT: 'brctl'@'%'
	Missing []Grant
}

func (e *MissingGrantError) Error() string {
	var parts []string
	for _, g := range e.Missing {
		parts = append(parts, fmt.Sprintf("%s on %s (%s)", g.Privilege, g.On, g.Why))
	}
	return fmt.Sprintf("account %s lacks %s; run: %s",
		e.Account, strings.Join(parts, ", "), strings.Join(e.Statements(), "; "))
}

// Statements returns the GRANT statements that fix it.
func (e *MissingGrantError) Statements() []string {
	var out []string
	for _, g := range e.Missing {
		out = append(out, fmt.Sprintf("GRANT %s ON %s TO %s", g.Privilege, g.On, e.Account))
	}
	return out
}

// probe is a read that TiDB refuses without the grant. SHOW GRANTS is not used:
// what it prints depends on roles and on which of them are active.
type probe struct {
	grant     Grant
	statement string
}

// probes ask no node of the cluster for anything: nothing listens at port 0, so
// no instance matches. SUPER includes neither of these privileges.
func probes() []probe {
	const nobody = " WHERE `TYPE` = 'tikv' AND `INSTANCE` = '0.0.0.0:0'"
	return []probe{
		{Grant{"CONFIG", "*.*", "SET CONFIG, cluster_config, cluster_hardware"}, "SELECT 1 FROM information_schema.cluster_config" + nobody},
		{Grant{"PROCESS", "*.*", "cluster_info"}, "SELECT 1 FROM information_schema.cluster_info" + nobody},
	}
}

// CheckGrants returns a *MissingGrantError that names every missing privilege,
// or another error when TiDB could not be asked.
func (c *Client) CheckGrants(ctx context.Context) error {
	s, err := c.session(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	var missing []Grant
	for _, p := range probes() {
		_, err := s.query(ctx, p.statement)
		switch {
		case err == nil:
		case denied(err):
			missing = append(missing, p.grant)
		default:
			return fmt.Errorf("check grant %s: %w", p.grant.Privilege, err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	rows, err := s.query(ctx, "SELECT CURRENT_USER()")
	if err != nil || len(rows) != 1 {
		return &MissingGrantError{Account: quoteAccount(c.cfg.User + "@%"), Missing: missing}
	}
	return &MissingGrantError{Account: quoteAccount(rows[0][0]), Missing: missing}
}

func denied(err error) bool {
	switch serverCode(err) {
	case codeSpecificAccessDenied, codeTableAccessDenied, codeDBAccessDenied:
		return true
	}
	return false
}

// quoteAccount turns user@host into 'user'@'host'. It is shown, never sent.
func quoteAccount(account string) string {
	i := strings.LastIndex(account, "@")
	if i < 0 {
		return "'" + account + "'"
	}
	return fmt.Sprintf("'%s'@'%s'", account[:i], account[i+1:])
}
